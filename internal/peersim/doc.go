// Package peersim plays other implementations of iWARP: a scripted peer that starts
// a connection, in either role, as a row of data says that siw, or the driver of an
// RNIC, does it, oddities included, and then exchanges Sends.
//
// It is an independent party: it has the codecs of packages mpa, ddp and rdmap, and
// neither their startup machines nor the engine. What it does is in three places:
//
//	Behaviour  one implementation, as data; Rows has those that are known
//	Initiate, Respond, Dial  the startup, which ends with a Session or a Refusal
//	Session    Full Operation, as far as a test needs it: Sends both ways,
//	           zero-length Reads and Writes, a Terminate
//
// A peer runs in the goroutine that calls it, over any net.Conn: loopback TCP, or a
// pipe and virtual time. A RST needs a connection with SetLinger, as TCP's, or with
// a method Reset; otherwise it is a close. Whoever writes to a pipe in one call is
// taken to have sent one TCP segment.
//
//	go func() {
//		s, err := row.Respond(conn, peersim.Consumer{})
//		if err != nil { ... } // a *Refusal says what the peer did not like
//		text, err := s.Receive()
//		err = s.Send(text)
//	}()
//
// The rows are from what was measured with Linux 6.1's siw, and for the others from
// reading their drivers; what could not be read there is marked "assumed".
package peersim
