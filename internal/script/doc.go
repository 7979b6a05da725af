// Package script is the plumbing of a peer that is played by hand: what conformance
// cases, probes, simulated implementations and tests share when they speak to an
// endpoint byte by byte.
//
// A [Link] is one end of a connection:
//
//	l := script.NewLink(conn)
//	q := script.Request(mpa.DialectRFC6581, 4).Bytes()
//	err := l.Send(q)
//	r, err := l.Frame(deadline)
//	l.Operate(script.TermsOf(mpa.RoleInitiator, q, r))
//	ready, _ := l.Ready(mpa.RTRWrite)
//	err = l.Send(ready)
//	seg, err := l.NextSegment(deadline)
//
// An [Association] is an end of an SCTP association in UDP, chunk by chunk: the active one
// ([Associate]) or the passive one ([Answer]). A [Session] numbers what is said on one of its
// streams.
//
// The package frames, sends, waits and takes apart. What is right and what is wrong
// is for its users to say, each by a judgment of its own: nothing is refused here
// that has its bytes, and whatever is framed can be changed before it is sent. It
// knows nothing of the startup machines and of the engine that it is used against.
//
// Package conform/peer is the part of it that others can import, with expectations of its own.
package script
