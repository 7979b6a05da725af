package lowerlayer

import "time"

// PeerAcked is what a connection has that ends with the program. iwarp.Stack says what it and the others promise.
type PeerAcked interface{ PeerAcked() <-chan struct{} }

// AckProgress is what a connection with [PeerAcked] may have besides: a number that changes whenever the peer has
// acknowledged more.
type AckProgress interface{ AckProgress() uint32 }

// HasUnacked is what a connection with [PeerAcked] may have besides: whether the peer has not acknowledged something
// that was sent in front of the end.
type HasUnacked interface{ HasUnacked() bool }

// Unacked is what a Carrier of package association may have: how many bytes of a stream's messages the peer has not
// acknowledged.
type Unacked interface{ Unacked(stream uint16) int }

// Unsent is what a lower layer may have: whether it has something that was given to it, and that it has not sent yet.
type Unsent interface{ Unsent() bool }

// StreamUnsent is the same of a stream, for a Carrier of package association.
type StreamUnsent interface{ Unsent(stream uint16) bool }

// RoundTrip is what a lower layer may have, and a Carrier of package association: how long it takes there and back, as
// it has measured that; zero: it has not.
type RoundTrip interface{ RoundTrip() time.Duration }

// Assurer is what a Carrier of package association may have that ends with the program. Assure tells the peer several
// times that all has come that has, as the network may lose that; it returns when the last of it has left.
type Assurer interface{ Assure() }

// Moved is what a lower layer has that several connections share: how many bytes it has moved, except for those that
// have come for this one.
type Moved interface{ Moved() uint64 }

// LossError is what a connection with [PeerAcked] may have besides: why the peer has not acknowledged everything, once
// the channel of PeerAcked is closed.
type LossError interface{ LossError() error }

// Held is what a stream of whole segments may have: it is told how many bytes are held of what it has brought, as
// segments in front of it are missing, so that it can hold its peer back.
type Held interface{ Held(n int) }
