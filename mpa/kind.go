package mpa

import (
	"fmt"
	"strings"
)

// Kind is one of the three kinds of RNIC of draft-carrier-rddp-rnic-interop-00,
// section 5.1, by the versions of DDP and RDMAP that it can use. The zero value
// leaves the choice to where the Kind is used.
//
//	kind               DDP/RDMAP  MPA revision  markers  CRC
//	KindRDMAC          0          0             1        1
//	KindNonPermissive  1          1, 2          0 or 1   0 or 1
//	KindPermissive     0 or 1     0, 1, 2       0 or 1   0 or 1
type Kind uint8

// The kinds of RNIC.
const (
	// KindPermissive is an IETF RNIC that speaks to RDMAC RNICs as they do.
	KindPermissive Kind = iota + 1
	// KindNonPermissive is an IETF RNIC that only knows version 1.
	KindNonPermissive
	// KindRDMAC is an RNIC of the RDMA Consortium, on whose behalf Request and
	// Reply Frames of revision 0 are exchanged. It cannot do without markers and
	// CRCs.
	KindRDMAC
)

var kindNames = [...]string{"default", "permissive", "non-permissive", "rdmac"}

// String returns "permissive", "non-permissive", "rdmac" or, for the zero value,
// "default".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText returns what String does.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes what String returns.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, name := range kindNames {
		if strings.EqualFold(name, string(b)) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("mpa: no kind of RNIC %q: one of %s", b, strings.Join(kindNames[1:], ", "))
}

// Version reports whether RNICs of the kind can use a version of DDP and RDMAP:
// 0 or 1. The zero Kind counts as KindPermissive, and a value that is no Kind has no
// version.
func (k Kind) Version(version uint8) bool {
	switch k {
	case KindRDMAC:
		return version == 0
	case KindNonPermissive:
		return version == 1
	case 0, KindPermissive:
		return version <= 1
	}
	return false
}

// known reports whether k, which is set, is one of the constants.
func (k Kind) known() bool { return int(k) < len(kindNames) }

// or returns k, or another where k is not set.
func (k Kind) or(other Kind) Kind {
	if k == 0 {
		return other
	}
	return k
}

// always reports whether markers and CRCs are used in any case, in what RNICs of the
// kind receive.
func (k Kind) always(d Dialect) bool { return k == KindRDMAC || d.row().always }

// speaks reports whether RNICs of the kind can use a dialect at all.
func (k Kind) speaks(d Dialect) bool { return d != 0 && k.Version(d.row().version) }
