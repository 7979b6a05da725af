// Package matrix brings up connections between every two ways of starting MPA that
// there are, over loopback TCP, and compares what comes up, or how it is refused,
// with what the documents demand.
//
// # Rows
//
// What is run is data: [Figures] has figures 2, 3 and 4 of
// draft-carrier-rddp-rnic-interop-00 as printed there, [Groups] the wider matrix. A
// [Row] has two ends and, in a small language of facts, what is demanded of them:
//
//	up V=0 M=1/1 CRC=1      it comes up, with DDP and RDMAP version 0, ...
//	close rev=0/1           it is refused by closing, after a Request of revision 0
//	                        and a Reply of revision 1
//
// A row is right if each fact demanded is what was found, and if all who know a
// fact say the same: the initiator's QP, the responder's QP, and the octets on the
// wire. Between the two ends stands a relay that keeps those octets; what they say
// is read from them alone (a marker in front or none, a CRC that is correct or not,
// the version bits of every FPDU), so that two ends that share a wrong idea are found
// out. In a connection that comes up between two ends of ours, each sends a Send, a
// Write and a Read of 3000 octets, which are compared.
//
// # Facts
//
// In what follows x/y is of the Request and of the Reply, or of the initiator and of
// the responder. A "*" in a demand is any value, and a comma stands between values
// of which one is demanded.
//
//	up, close, reject, terminate, invalid
//	           how it ended for the initiator; invalid: an end refuses its own offer
//	V          DDP and RDMAP version, in both directions
//	M          markers in the receive direction of initiator/responder
//	CRC        whether CRCs are used
//	dialect    what was agreed on
//	rev        revisions of Request/Reply
//	asked      their bits, of M, C, R and S
//	flags      the bits A, B, C and D of their enhanced data
//	request    IRD/ORD of the Request, reply those of the Reply, as sent
//	ird, ord   in force at initiator/responder
//	p2p        whether an RTR indication opens the connection
//	rtr        its kind
//	rtrframe   the bits C, R and S of an Rtr frame
//	answer     the kinds that the responder named
//	pd         octets of private data that the responder/initiator has received
//	first      who sent the first FPDU
//	data       what was sent and compared: s, w, r for Send, Write, Read
//	stream     whether TCP is usable behind a rejection: open, or closed
//	code       of the Terminate
//	failure    of the initiator's startup, as mpa.Failure has it
//	named      whether the error texts name the revisions of both ends
//	fellback   whether it was tried again with revision 1
//	closed     fin: both ends closed in order
//
// # JSON
//
// A [Report] as JSON has "cells", how many rows were run, and "as_demanded", how many
// of them were right; "ms", the time taken; "figures": "figure", "title" and "cells",
// a list, of each; and "wider", a list. An entry of these lists has "group", "name",
// "requirement", "demanded", "got", "ok", "differences" (a list of texts),
// "initiator_error", "responder_error" (empty if there was none), "wire" (the startup
// frames, in order of direction) and "ms". One of "cells" has "initiator",
// "initiator_markers", "responder", "responder_markers" and "printed", the cell as in
// the document, too.
package matrix
