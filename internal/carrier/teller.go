package carrier

// A Teller is an iwarp.EndTeller.
type Teller interface{ Told() <-chan struct{} }

// Acknowledged is what a [Teller] may have besides: a number that is another whenever the peer has acknowledged more.
type Acknowledged interface{ Acknowledged() uint32 }

// Lacks is what a [Teller] may have besides: whether the peer has not acknowledged something that was sent in front of the end.
type Lacks interface{ Lacks() bool }

// Unacked is what a Carrier of package association may have: how many octets of a stream's messages the peer has not acknowledged.
type Unacked interface{ Unacked(stream uint16) int }

// Assurer is what a Carrier of package association may have that ends with the program. Assure tells the peer several times that all has
// come that has, as the network may lose that; it returns when the last of it has left.
type Assurer interface{ Assure() }

// Moved is what a lower layer has that several connections share: how many octets it has moved, but for those that have come for this
// one.
type Moved interface{ Moved() uint64 }

// Lost is what a [Teller] may have besides: why the peer has not acknowledged everything, once Told's channel is closed.
type Lost interface{ Lost() error }
