// Package matrix starts connections over loopback TCP, each way of starting MPA
// against each other way, and compares what comes up, or how the connection is
// refused, with what the documents demand.
//
// # Rows
//
// The rows are data: [Figures] has figures 2, 3 and 4 of
// draft-carrier-rddp-rnic-interop-00 as printed there, and [Groups] has the wider
// matrix. A [Row] has two ends and, in a small language of facts, what the documents
// demand of them:
//
//	up V=0 M=1/1 CRC=1      it comes up, with DDP and RDMAP version 0, ...
//	close rev=0/1           it is refused by closing, after a Request of revision 0
//	                        and a Reply of revision 1
//
// A row is right if each demanded fact was found, and if all sources of a fact agree:
// the initiator's QP, the responder's QP, and the bytes on the wire. A relay between
// the two ends keeps those bytes. The facts of the wire are read from the octets
// alone (whether a marker stands in front, whether a CRC is correct, the version bits
// of every FPDU), so that a mistake that both ends share is found. On a connection
// that comes up between two ends of ours, each sends a Send, a Write and a Read of 3000
// bytes, which are compared.
//
// [SCTPGroups] has the cells of RFC 6581, section 7, over SCTP in UDP. There the relay
// keeps the messages of SCTP's packets, and an end by hand says messages of its own.
//
// # Facts
//
// Below, x/y are the values of the Request and of the Reply, or of the initiator and of
// the responder. In a demand, "*" is any value, and commas separate values of which one
// is demanded.
//
//	up, close, reject, terminate, invalid
//	           the end for the initiator; invalid: an end refuses its own offer
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
//	pd         bytes of private data that the responder/initiator has received
//	first      who sent the first FPDU
//	data       what was sent and compared: s, w, r for Send, Write, Read
//	stream     whether TCP is usable after a rejection: open, or closed
//	code       of the Terminate
//	failure    the mpa.Failure of the initiator's startup
//	named      whether the error texts name the revisions of both ends
//	fellback   whether the initiator tried again with revision 1
//	closed     fin: both ends closed in order
//
// Over SCTP there are no M, CRC, rev, asked, rtrframe and named, and these besides:
//
//	refuse     an end: the peer's provider has answered with a Terminate
//	violate    an end: the peer's answer broke a rule
//	codes      Function Codes of the Initiate/of what answers it
//	indication whether DDP's Adaptation Layer Indication is in INIT/INIT ACK
//	chunks     as-they-should: unordered, whole, with one of DDP's PPIDs, on one stream
//	ssn        gapless: the DDP-SSNs of a direction count from 0
//	last       the last message of each direction in the order of its DDP-SSNs
//	closed     shutdown: the association ended in order
//
// # JSON
//
// A [Report] as JSON has "cells", the number of rows that were run; "as_demanded", the
// number of those that were right; "ms", the time taken; "interrupted", true if the last rows are missing for that;
// "figures", a list with "figure", "title" and "cells", a list, for each; and "wider", a list. An entry of
// the lists of rows has "group", "name", "requirements" (a list of IDs), "section" (of
// which document), "demanded", "got", "ok",
// "differences" (a list of texts), "initiator_error", "responder_error" (why the connection failed there, if it did),
// "wire" (the startup frames, in order of direction) and "ms". An entry of "cells" also has "initiator",
// "initiator_markers", "responder", "responder_markers" and "printed", the cell as the document has it.
package matrix
