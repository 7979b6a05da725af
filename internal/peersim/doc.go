// Package peersim plays other implementations of iWARP: a scripted peer that starts a
// connection in either role, as the table of known peers says that siw or the driver of
// an RNIC does it, oddities included, and then exchanges Sends.
//
// It is an independent party: it uses package script and the codecs of packages mpa,
// ddp and rdmap, and neither our startup machines nor the engine. Its parts are:
//
//	peers.Peer               one implementation, as data
//	Initiate, Respond, Dial  the startup, which ends with a Session or a Refusal
//	Session                  Full Operation, as far as a test needs it: Sends both
//	                         ways, zero-length Reads and Writes, a Terminate
//
// A peer runs in the goroutine that calls it, over any net.Conn: loopback TCP, or a
// pipe and virtual time. What one Read returns counts as one TCP segment.
//
//	go func() {
//		s, err := peersim.Respond(&peer, conn, peersim.Consumer{})
//		if err != nil { ... } // a *Refusal says what the peer did not like
//		text, err := s.Receive()
//		err = s.Send(text)
//	}()
package peersim
