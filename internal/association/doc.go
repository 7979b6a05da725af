// Package association drives the machine of package sctp: it carries messages between an sctp.Association and a
// Carrier, with goroutines, locks and clocks, and gives each session the form of a lower layer for a QP.
//
// An association has goroutines of its own beside the two of each QP: one that sends, and one that receives from the
// kernel's SCTP. In user space the second takes the streams that the peer opens; beside it there are one that reads
// each stream, one that tells what was acknowledged, and two of pion's. The socket has one that reads the packets of
// all its associations.
//
// What its sessions hold ahead of order, and what has overtaken an Accept, is added up for the carrier, which takes
// nothing new while that is too much and something is missing.
package association
