package engine

// State is the state of a QP: the only one; socket and connection follow it.
type State uint8

const (
	// Idle: no connection. Work is queued, not processed.
	Idle State = iota
	// RTS, Ready to Send: the connection is up.
	RTS
	// Terminate: an error was found here or reported by the peer; the
	// Terminate is on its way, the connection is being closed.
	Terminate
	// Error: the connection is gone and all work flushed.
	Error
	// Closing: the connection is being closed without an error.
	Closing
)

var stateNames = [...]string{"Idle", "RTS", "Terminate", "Error", "Closing"}

// String names the state as the RDMA verbs do.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// legal holds the transitions of the RDMA verbs, section 6.2, by [from][to].
var legal = [5][5]bool{
	Idle:      {Idle: true, RTS: true, Error: true},
	RTS:       {RTS: true, Terminate: true, Error: true, Closing: true},
	Terminate: {Error: true},
	Error:     {Idle: true},
	Closing:   {Idle: true, Error: true},
}

// Legal reports whether a QP may go from one state to another.
func Legal(from, to State) bool {
	return int(from) < len(legal) && int(to) < len(legal) && legal[from][to]
}

// byConsumer holds those of them that a consumer may ask for, by [from][to]:
// the others happen with the connection. Connect leads to RTS.
var byConsumer = [5][5]bool{
	Idle:  {Idle: true, Error: true},
	RTS:   {Terminate: true, Error: true, Closing: true},
	Error: {Idle: true},
}

// MayAsk reports whether Modify may be asked for a transition.
func MayAsk(from, to State) bool {
	return int(from) < len(byConsumer) && int(to) < len(byConsumer) && byConsumer[from][to]
}

// LLP is what the driver has to do with the TCP connection.
type LLP uint8

const (
	// Keep: nothing.
	Keep LLP = iota
	// Finish: send a FIN; what Output gave has all been sent.
	Finish
	// AwaitFINAck: the peer's half has ended. End ours as well, unless Finish did, and call FINAcked when the peer has
	// acknowledged that, or Failed, and Unacked until then. Only with Params.TellsEnd.
	AwaitFINAck
	// Drop: close; both directions have ended.
	Drop
	// Reset: close at once, abortively.
	Reset
)
