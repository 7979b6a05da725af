// Package rig is what the tests of connections have in common: two ends that are connected, peers that a test plays
// byte by byte, the transports that both run over, and what is expected of them. Only tests import it.
package rig
