// Package sctp has the tests of connections over SCTP, through the public API.
package sctp
