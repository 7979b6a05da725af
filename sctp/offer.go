package sctp

import "github.com/goiwarp/iwarp/mpa"

// An OfferError names a setting of an Offer that only MPA has. It is an mpa.ErrOffer.
type OfferError struct {
	Field  string // of mpa.Offer
	Reason string
}

func (e *OfferError) Error() string { return "sctp: " + e.Field + ": " + e.Reason }

// Unwrap returns mpa.ErrOffer.
func (e *OfferError) Unwrap() error { return mpa.ErrOffer }

// CheckOffer refuses what no session has: markers, no CRCs, the dialects that are MPA's, and what only RDMAC RNICs do. The
// error is an *OfferError. Connect has no use for Markers and NoCRC: they may be defaults of an RNIC that is for MPA, too.
func CheckOffer(o mpa.Offer) error {
	switch {
	case o.Markers:
		return &OfferError{"Markers", "over SCTP there are no markers"}
	case o.NoCRC:
		return &OfferError{"NoCRC", "SCTP has a checksum of its own, which is always on"}
	case o.Kind == mpa.KindRDMAC:
		return &OfferError{"Kind", "RDMAC RNICs have TCP only"}
	case o.Dialect != 0:
		return checkDialect(o.Dialect)
	}
	return nil
}

// checkDialect wants the enhanced startup of RFC 6581, or the plain one of RFC 5043, which go by the dialects' names.
func checkDialect(d mpa.Dialect) error {
	if d == mpa.DialectRFC6581 || d == mpa.DialectRFC5044 {
		return nil
	}
	return &OfferError{"Dialect", "over SCTP there are rfc6581, which is the enhanced startup, and rfc5044"}
}
