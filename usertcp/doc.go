// Package usertcp is TCP/IP in user space (gVisor's stack) that is aware of MPA, as RFC 5044 describes it in section 3
// and appendix A: its connections show bytes as soon as their segment has come, in whatever order segments do, and
// each FPDU leaves in one TCP segment, also when it is sent again.
//
// A [Stack] has addresses of its own and a [Link], which carries its IP packets: [Pipe] joins two stacks in one
// process, and can lose, repeat, delay and reorder packets; a TUN device (OpenTUN, Linux only) joins one to the network
// of the host.
//
// # What it takes
//
// Bytes are shown ahead of order by a tap between stack and link, which sees every packet of both directions. The tap
// shows what TCP is going to accept, or less: a segment that is not shown comes by Read like all others. Only
// whole segments without IP fragmentation, IPv4 options or IPv6 extension headers are shown.
//
// An FPDU that is no longer than the EMSS when it is written stays whole. If the MTU of the path sinks afterwards, the
// FPDU is cut once; it is cut, too, where the peer's window is smaller than the FPDU. When a peer seems to have closed
// its window, TCP probes it by a segment that is no FPDU (RFC 9293, section 3.8.6.1): the segment has one byte, which
// the peer has acknowledged before and ignores.
//
// # What it refuses
//
// The tap keeps from TCP what somebody may have made up who knows the ends of a connection and does not see it: a RST
// within the window that is not at the next number, a SYN, and what acknowledges bytes that were never sent, or long
// ago. The peer is asked, by a challenge ACK (RFC 5961). A peer that has no such connection any more answers with the
// right RST: so one that comes behind lost bytes ends the connection a round trip later. [Config].ChallengeACKs bounds
// how often a connection asks.
//
// gVisor's log is one for the whole program. Its default target is standard error, to which peers could write as much
// as they like: [New] turns this target off, and leaves any other that the program has set
// (gvisor.dev/gvisor/pkg/log.SetTarget) before or sets after it.
//
// # How it ends
//
// A half that has ended does not slow the other: gVisor's TCP leaves selective acknowledgements out once its FIN is
// sent, and the tap adds them.
//
// The connections of a Stack end with the Stack, and the Stack ends with the program: what a connection has not
// delivered by then is lost. [Stack.Shutdown] waits until all is delivered.
package usertcp
