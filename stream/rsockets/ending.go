package rsockets

// An Ending says how far the two directions have come.
type Ending struct {
	ended, peerEnded bool
	disconnected     bool // by the peer, which does not receive any more
	said             bool // we have told it Disconnect
}

// PeerEnded reports whether the peer has said that it sends no more. What has arrived is to be read all the same.
func (e *Ending) PeerEnded() bool { return e.peerEnded }

// Ended reports whether this end has ended its direction.
func (e *Ending) Ended() bool { return e.ended }

// Disconnected reports whether the peer receives no more.
func (e *Ending) Disconnected() bool { return e.disconnected }

// End ends our direction, and returns the word that says so to the peer, if there is one to be sent. It is Disconnect where the peer has
// ended its own, and Shutdown otherwise.
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

// Disconnect ends both directions, and returns the word that says so, if it was not said.
func (e *Ending) Disconnect() (w Word, send bool) {
	send = !e.said
	e.ended, e.said = true, true
	return NewWord(OpControl, uint32(Disconnect)), send
}

func (e *Ending) control(c Control) error {
	switch c {
	case Disconnect:
		e.peerEnded, e.disconnected = true, true
	case Shutdown:
		e.peerEnded = true
	case KeepAlive:
	default:
		return wrong("word", "control %d", c)
	}
	return nil
}
