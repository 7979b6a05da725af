package driver

import (
	"fmt"
	"slices"
)

// State is how far a connection is on the way to its end. The Machine's state says what the protocols make of it; this
// one says what the driver does with the lower layer.
type State uint8

// The transitions are these, and no others:
//
//	Open ────> Closing    Close was called. A QP takes no more requests.
//	Open, Closing ──> Leaving   The Machine wants the lower layer closed, and closing that is the user's code, which
//	                      runs without the lock. After it the peer's acknowledgement of our FIN is waited for.
//	Open, Closing ──> Closed    The same, where closing is a system call.
//	Leaving ──> Closed    The lower layer is closed.
//	Closed ───> Over      No goroutine writes any more, and all requests have been given back.
const (
	Open State = iota
	Closing
	Leaving
	Closed
	Over
)

var stateNames = [...]string{"Open", "Closing", "Leaving", "Closed", "Over"}

// String names the state.
func (s State) String() string { return stateNames[s] }

// follows has the states that each state may lead to.
var follows = [...][]State{
	Open: {Closing, Leaving, Closed}, Closing: {Leaving, Closed}, Leaving: {Closed}, Closed: {Over}, Over: {},
}

// enter goes to another state. A way that is not drawn is a bug of this package.
func (c *Conn) enter(s State) {
	if !slices.Contains(follows[c.state], s) {
		panic(fmt.Sprintf("driver: a connection goes from %v to %v", c.state, s))
	}
	c.state = s
}

// listening reports whether what the lower layer brings is still wanted.
func (c *Conn) listening() bool { return c.state < Leaving }
