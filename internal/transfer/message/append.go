package message

import "encoding/binary"

// head appends the first four bytes.
func head(b []byte, t Type, flags byte, code uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, byte(t), flags), code)
}

func u32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func u64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// text appends a text with its length.
func text(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// flags has a bit for each that is set.
func flags(set ...bool) (bits byte) {
	for i, on := range set {
		if on {
			bits |= 1 << i
		}
	}
	return bits
}

// Append appends the message.
func (m Begin) Append(b []byte) []byte {
	b = head(b, TypeBegin, flags(m.Put, m.Force, m.Resume, m.Recursive, m.Into), 0)
	return text(u64(b, m.Rate), m.Path)
}

// Append appends the message.
func (m Offer) Append(b []byte) []byte {
	b = u32(u32(head(b, TypeOffer, 0, uint16(m.Kind)), m.Mode), m.Nanoseconds)
	return text(text(u64(u64(b, uint64(m.Seconds)), m.Size), m.Path), m.Detail)
}

// Append appends the message.
func (m Answer) Append(b []byte) []byte { return text(head(b, TypeAnswer, 0, uint16(m.Code)), m.Text) }

// Append appends the message.
func (m Grant) Append(b []byte) []byte {
	b = u64(head(b, TypeGrant, flags(m.Place, m.Have), 0), m.Offset)
	return append(u64(u32(u32(b, m.Length), m.STag), m.TO), m.Digest[:]...)
}

// Append appends the message.
func (m Wrote) Append(b []byte) []byte {
	b = u32(u64(head(b, TypeWrote, 0, uint16(m.State)), m.Offset), m.Length)
	return text(append(b, m.Digest[:]...), m.Text)
}

// Append appends the message.
func (m Done) Append(b []byte) []byte {
	return append(head(b, TypeDone, flags(m.Changed), 0), m.Digest[:]...)
}

// Append appends the message.
func (End) Append(b []byte) []byte { return head(b, TypeEnd, 0, 0) }

// Append appends the message.
func (Working) Append(b []byte) []byte { return head(b, TypeWorking, 0, 0) }
