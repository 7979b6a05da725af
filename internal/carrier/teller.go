package carrier

// A Teller is an iwarp.EndTeller.
type Teller interface{ Told() <-chan struct{} }

// Acknowledged is what a [Teller] may have besides: a number that is another whenever the peer has acknowledged more.
type Acknowledged interface{ Acknowledged() uint32 }

// Lost is what a [Teller] may have besides: why the peer has not acknowledged everything, once Told's channel is closed.
type Lost interface{ Lost() error }
