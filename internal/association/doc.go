// Package association drives the machine of package sctp: it carries messages between an sctp.Association and a
// Carrier, with goroutines, locks and clocks, and gives each session the form of a lower layer for a QP.
package association
