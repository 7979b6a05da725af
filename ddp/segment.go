package ddp

import (
	"encoding/binary"
	"fmt"
)

// A Header holds the fields of a DDP header of either model. The fields of the
// other model are zero after [Parse] and are not looked at by [Header.Append].
type Header struct {
	Tagged  bool  // T
	Last    bool  // L
	Rsvd    uint8 // four reserved bits of the DDP Control Field, 0 when sent by the rules
	Version uint8 // DV, two bits
	RsvdULP uint8 // second octet: RsvdULP, or RsvdULP[0:7]; RDMAP's control field

	// Tagged model, RFC 5041, Section 4.2.
	STag uint32
	TO   uint64

	// Untagged model, RFC 5041, Section 4.3.
	ULP uint32 // RsvdULP[8:39]; RDMAP's Invalidate STag
	QN  uint32
	MSN uint32
	MO  uint32
}

// A Segment is one received DDP Segment. Raw and Payload are parts of the
// ULPDU which was parsed; nothing is copied.
type Segment struct {
	Header
	Raw     []byte // the header's octets as received
	Payload []byte // the ULP Payload, may be empty
}

// Parse splits a ULPDU into header and payload. A ULPDU which does not hold
// the header that its T bit announces gives an [*Error] with
// [CodeLocalCatastrophic], as there is no header to report a better one with.
// Nothing else is judged here, the version neither: see [CheckVersion].
func Parse(ulpdu []byte) (Segment, error) {
	if len(ulpdu) == 0 {
		return Segment{}, tooShort("shortest", 0, TaggedHeaderLen)
	}
	// RFC 5041, Section 4.1: "If set to one, the ULP Payload carried in this
	// DDP Segment MUST be Placed into a Tagged Buffer." [D09]
	// "If set to zero, the ULP Payload [...] MUST be Placed into an Untagged Buffer." [D10]
	if ulpdu[offControl]&controlT != 0 {
		return parseTagged(ulpdu)
	}
	return parseUntagged(ulpdu)
}

func parseTagged(ulpdu []byte) (Segment, error) {
	v, err := ParseTagged(ulpdu)
	if err != nil {
		return Segment{}, err
	}
	return Segment{
		Header: Header{
			Tagged: true, Last: v.Last(), Rsvd: v.Rsvd(), Version: v.Version(),
			RsvdULP: v.RsvdULP(), STag: v.STag(), TO: v.TO(),
		},
		Raw:     v,
		Payload: ulpdu[TaggedHeaderLen:],
	}, nil
}

func parseUntagged(ulpdu []byte) (Segment, error) {
	v, err := ParseUntagged(ulpdu)
	if err != nil {
		return Segment{}, err
	}
	return Segment{
		Header: Header{
			Last: v.Last(), Rsvd: v.Rsvd(), Version: v.Version(),
			RsvdULP: v.RsvdULP(), ULP: v.ULP(), QN: v.QN(), MSN: v.MSN(), MO: v.MO(),
		},
		Raw:     v,
		Payload: ulpdu[UntaggedHeaderLen:],
	}, nil
}

// Length returns the length of the DDP Segment, header and payload.
func (s *Segment) Length() int { return len(s.Raw) + len(s.Payload) }

// Len returns the length of the header which Append writes, 14 or 18.
func (h *Header) Len() int {
	if h.Tagged {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// Append appends the header's octets to dst. Any field values are written,
// legal or not; of Version the low two bits are taken, of Rsvd the low four.
func (h *Header) Append(dst []byte) []byte {
	dst = append(dst, h.control(), h.RsvdULP)
	if h.Tagged {
		dst = binary.BigEndian.AppendUint32(dst, h.STag)
		return binary.BigEndian.AppendUint64(dst, h.TO)
	}
	dst = binary.BigEndian.AppendUint32(dst, h.ULP)
	dst = binary.BigEndian.AppendUint32(dst, h.QN)
	dst = binary.BigEndian.AppendUint32(dst, h.MSN)
	return binary.BigEndian.AppendUint32(dst, h.MO)
}

func (h *Header) control() byte {
	c := h.Rsvd<<controlRsvdShift&controlRsvd | h.Version&controlVersion
	if h.Tagged {
		c |= controlT
	}
	if h.Last {
		c |= controlL
	}
	return c
}

// String describes the header in the RFC's field names.
func (h Header) String() string {
	l := 0
	if h.Last {
		l = 1
	}
	if h.Tagged {
		return fmt.Sprintf("DDP tagged L=%d Rsvd=%d DV=%d RsvdULP=%#02x STag=%#08x TO=%#x", l, h.Rsvd, h.Version, h.RsvdULP, h.STag, h.TO)
	}
	return fmt.Sprintf("DDP untagged L=%d Rsvd=%d DV=%d RsvdULP=%#02x:%08x QN=%d MSN=%d MO=%d",
		l, h.Rsvd, h.Version, h.RsvdULP, h.ULP, h.QN, h.MSN, h.MO)
}
