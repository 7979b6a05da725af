package ddp

import "encoding/binary"

// A Sequel is the segment that comes next in a message of several, as far as its header can be foretold: it equals
// that of the segment before it, except for the TO or MO, which is where that segment ended. All else that was found
// out about that segment holds for its sequel, too. The last segment of a message is no Sequel, as its L bit differs.
//
// The zero value belongs to no message, and no segment matches it.
type Sequel struct {
	head [offMO]byte // what comes before the TO or MO; a tagged segment's is shorter, and the rest of it zeros
	at   uint64      // TO or MO
}

// After makes q the sequel of a segment. One that is the last of its message, or has no payload, has none.
func (q *Sequel) After(s *Segment) {
	*q = Sequel{}
	switch {
	case s.Last || s.PayloadLen() == 0:
	case s.Tagged:
		q.at = s.TO + uint64(s.PayloadLen())
		copy(q.head[:offTO], s.Raw)
	default:
		q.at = uint64(s.MO) + uint64(s.PayloadLen())
		copy(q.head[:], s.Raw)
	}
}

// Take reports whether a ULPDU is the segment that comes next, and has a payload, and returns that with its TO or MO.
// After that, the segment that follows it is the next.
func (q *Sequel) Take(ulpdu []byte) (payload []byte, at uint64, ok bool) {
	if q.Tagged() {
		payload, at, ok = q.tagged(ulpdu)
	} else {
		payload, at, ok = q.untagged(ulpdu)
	}
	if !ok || at != q.at {
		return nil, 0, false
	}
	q.at += uint64(len(payload))
	return payload, at, true
}

func (q *Sequel) tagged(ulpdu []byte) (payload []byte, to uint64, ok bool) {
	if len(ulpdu) <= TaggedHeaderLen || [offTO]byte(ulpdu) != [offTO]byte(q.head[:]) {
		return nil, 0, false
	}
	return ulpdu[TaggedHeaderLen:], binary.BigEndian.Uint64(ulpdu[offTO:]), true
}

// untagged finds no message where there is none: At its end a segment has an MO which is not 0.
func (q *Sequel) untagged(ulpdu []byte) (payload []byte, mo uint64, ok bool) {
	if q.at == 0 || len(ulpdu) <= UntaggedHeaderLen || [offMO]byte(ulpdu) != q.head {
		return nil, 0, false
	}
	return ulpdu[UntaggedHeaderLen:], uint64(binary.BigEndian.Uint32(ulpdu[offMO:])), true
}

// Tagged reports whether the message is.
func (q *Sequel) Tagged() bool { return q.head[offControl]&controlT != 0 }

// STag is that of a tagged message.
func (q *Sequel) STag() uint32 { return binary.BigEndian.Uint32(q.head[offSTag:]) }

// RsvdULP is that of the message: RDMAP's control field.
func (q *Sequel) RsvdULP() uint8 { return q.head[offRsvdULP] }
