// Package usertcp is TCP/IP in user space (gVisor's stack) that is aware of MPA, as RFC 5044 describes it in section 3 and
// appendix A: its connections show octets as soon as their segment has come, in whatever order segments do, and send each FPDU
// in one TCP segment, also when it is sent again.
//
// A [Stack] has addresses of its own and a [Link], which carries its IP packets: [Pipe] joins two stacks in one process,
// and can lose, repeat, delay and reorder packets; a TUN device (OpenTUN, Linux only) joins one to the network of the host.
//
// # What it takes
//
// Octets are shown ahead of order by a tap between stack and link, which sees every packet of both directions. It shows what
// TCP is going to accept, or less: a segment that it does not show comes by Read like all others. Only
// whole segments without IP fragmentation, IPv4 options or IPv6 extension headers are shown.
//
// An FPDU stays whole where it is no longer than the EMSS at the moment it is written. What was written before the path's MTU
// sinks is cut once; a peer whose window is smaller than an FPDU has it cut, too. A segment by which TCP asks for the window of a peer that it takes to
// have closed it (RFC 9293, section 3.8.6.1) is no FPDU: it has one octet, which the peer has acknowledged before and ignores.
//
// gVisor's log is one for the whole program. Its default target is standard error, to which peers could write as much as
// they like: [New] turns that off, and leaves any other that the program has set (gvisor.dev/gvisor/pkg/log.SetTarget) before
// or sets after it.
//
// # How it ends
//
// A half that has ended does not slow the other: gVisor's TCP leaves selective acknowledgements out once its FIN is sent, and the tap
// adds them.
//
// The connections of a Stack end with it, and it ends with the program: what they have not delivered by then is lost.
// [Stack.Shutdown] waits for it.
package usertcp
