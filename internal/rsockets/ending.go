package rsockets

// An Ending says how far the two directions have come.
type Ending struct {
	ended, peerEnded bool
	disconnected     bool // by the peer, which does not receive any more
	said             bool // we have told it Disconnect, or need not
}

// PeerEnded reports whether the peer has said that it sends no more. What has arrived is to be read all the same.
func (e *Ending) PeerEnded() bool { return e.peerEnded }

// Ended reports whether this end has ended its direction.
func (e *Ending) Ended() bool { return e.ended }

// Disconnected reports whether the peer receives no more.
func (e *Ending) Disconnected() bool { return e.disconnected }

// End ends our direction, and returns the word that says so to the peer, if there is one to be sent. It is Disconnect
// where the peer has ended its own, and Shutdown otherwise.
func (e *Ending) End() (w Word, send bool) {
	switch {
	case e.ended || e.disconnected:
		e.ended = true
		return 0, false
	case e.peerEnded:
		return e.Disconnect()
	}
	e.ended = true
	return NewWord(OpControl, uint32(Shutdown)), true
}

// Disconnect ends both directions, and returns the word that says so, if the peer does not know yet.
func (e *Ending) Disconnect() (w Word, send bool) {
	send = !e.said
	e.ended, e.said = true, true
	return NewWord(OpControl, uint32(Disconnect)), send
}

// control takes note of what the peer has said; silent tells of one that waits for no word once it has said Disconnect,
// or once words of Shutdown have crossed.
func (e *Ending) control(c Control, silent bool) error {
	switch c {
	case Disconnect:
		// An end of rdma-core's may have deregistered the memory of its receives by now: a word more would end the
		// connection with a Terminate.
		e.peerEnded, e.disconnected, e.said = true, true, e.said || silent
	case Shutdown:
		// Where its word crosses ours, an end of rdma-core's is disconnected by ours: it says nothing more, and takes
		// nothing. It is not e.disconnected before that, as what we have sent may not have reached it yet.
		e.peerEnded, e.said = true, e.said || e.ended && silent
	case KeepAlive:
	default:
		return wrong("word", "control %d", c)
	}
	return nil
}
