package network

import (
	"errors"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A Refused is an option of the startup that a network does not have.
type Refused struct {
	Option string // as on the command line, without dashes
	Reason string
}

func (e *Refused) Error() string { return "--" + e.Option + ": " + e.Reason }

// options are those that set the fields of an Offer.
var options = map[string]string{"Markers": "markers", "NoCRC": "crc", "Kind": "kind", "Dialect": "dialect"}

// Check refuses what a network without MPA does not have of an Offer. The error is a *Refused.
func (n *Network) Check(o mpa.Offer) error {
	if n.Streams {
		return nil
	}
	var only *sctp.OfferError
	if errors.As(sctp.CheckOffer(o), &only) {
		return &Refused{options[only.Field], only.Reason}
	}
	return nil
}
