package matrix

import "github.com/goiwarp/iwarp/mpa"

// A Row is two ends and what the documents demand of them.
type Row struct {
	Name        string
	Requirement string // document, section, requirement IDs
	Initiator   Initiator
	Responder   Responder
	// ResponderFirst has the initiator's consumer wait for the responder's Send
	// before it does anything.
	ResponderFirst bool
	Demanded       string
}

// A Group is rows of one kind.
type Group struct {
	Name string
	Rows []Row
}

// An Initiator is the end that asks for a connection.
type Initiator struct {
	Offer      mpa.Offer
	NoReads    bool
	NoFallback bool
	// Request is sent by hand, in place of what a Dialer would.
	Request *mpa.StartupFields
}

// A Responder is the end that is asked.
type Responder struct {
	Kind     mpa.Kind // of its RNIC
	Dialects []mpa.Dialect
	Messages bool
	// Answer is what it accepts with; its Markers and NoCRC are also what a
	// non-permissive RNIC says of itself when it refuses.
	Answer  mpa.Offer
	NoReads bool
	// Reject, if it is set, is its answer.
	Reject *Rejection
	// Replies are sent by hand, one on each connection, in place of what a Listener
	// would; nil closes it.
	Replies []*mpa.StartupFields
}

// A Rejection is what a responder rejects with.
type Rejection struct {
	PrivateData []byte
	IRD, ORD    uint16
}

// privateData returns n octets that show a wrong order or place.
func privateData(n int) []byte { return pattern(n, 0x5a) }

// pattern returns n octets that do not repeat themselves from marker to marker.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*31+i/251) ^ seed
	}
	return b
}

// enhanced returns private data that is enhanced data.
func enhanced(e mpa.Enhanced) []byte { return mpa.AppendEnhanced(nil, &e) }
