package ddp

import "encoding/binary"

// A Sequel is the segment that comes next in a tagged message of several, as far as its header can be foretold: it is
// that of the segment before but for the TO, which is where that ended. All else that was judged of that
// one holds for it, too. The last segment of a message is none, as its L bit differs.
//
// The zero value is that of no message: no segment is its sequel.
type Sequel struct {
	head [offTO]byte
	to   uint64
}

// After has the segment come next that follows one which is not the last of its message, and has a payload.
func (q *Sequel) After(s *Segment) {
	*q = Sequel{to: s.TO + uint64(s.PayloadLen())}
	if s.Tagged && !s.Last && s.PayloadLen() > 0 {
		copy(q.head[:], s.Raw)
	}
}

// Take reports whether a ULPDU is the segment that comes next, and has a payload, and returns that with its TO. Then the one after it
// comes next.
func (q *Sequel) Take(ulpdu []byte) (payload []byte, to uint64, ok bool) {
	if len(ulpdu) <= TaggedHeaderLen || [offTO]byte(ulpdu) != q.head {
		return nil, 0, false
	}
	to = binary.BigEndian.Uint64(ulpdu[offTO:])
	if to != q.to || q.head[offControl]&controlT == 0 {
		return nil, 0, false
	}
	payload = ulpdu[TaggedHeaderLen:]
	q.to += uint64(len(payload))
	return payload, to, true
}

// STag is that of the message.
func (q *Sequel) STag() uint32 { return binary.BigEndian.Uint32(q.head[offSTag:]) }

// RsvdULP is that of the message: RDMAP's control field.
func (q *Sequel) RsvdULP() uint8 { return q.head[offRsvdULP] }
