package message

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// An Error is why bytes are no message.
type Error struct {
	Type   Type
	Field  string
	Offset int // where the field begins
	Reason string
}

// Error names the field.
func (e *Error) Error() string {
	return fmt.Sprintf("transfer: %v, %s at byte %d: %s", e.Type, e.Field, e.Offset, e.Reason)
}

// formats says of each type how it is read, which flags and which codes there are.
var formats = [...]struct {
	name  string
	flags byte
	codes uint16 // valid are those below
	parse func(*reader) Message
}{
	TypeBegin:   {"Begin", 1<<5 - 1, 1, (*reader).beginMessage},
	TypeOffer:   {"Offer", 0, uint16(Missed) + 1, (*reader).offer},
	TypeAnswer:  {"Answer", 0, uint16(codes), (*reader).answer},
	TypeGrant:   {"Grant", 1<<2 - 1, 1, (*reader).grant},
	TypeWrote:   {"Wrote", 0, uint16(Lost) + 1, (*reader).wrote},
	TypeDone:    {"Done", 1, 1, (*reader).done},
	TypeEnd:     {"End", 0, 1, func(*reader) Message { return End{} }},
	TypeWorking: {"Working", 0, 1, func(*reader) Message { return Working{} }},
}

// Parse reads a message, which is all of b. The error is an *Error.
func Parse(b []byte) (Message, error) {
	r := &reader{b: b}
	r.read("head", 4)
	if r.err != nil {
		return nil, r.err
	}
	r.kind, r.flags, r.code = Type(b[0]), b[1], binary.BigEndian.Uint16(b[2:])
	if r.kind == 0 || int(r.kind) >= len(formats) {
		return nil, r.wrong("Type", 0, "unknown")
	}
	f := formats[r.kind]
	switch {
	case r.flags&^f.flags != 0:
		return nil, r.wrong("Flags", 1, "unknown")
	case r.code >= f.codes:
		return nil, r.wrong("Code", 2, "unknown")
	}
	m := f.parse(r)
	if r.err == nil && r.at != len(b) {
		return nil, r.wrong("end", r.at, fmt.Sprintf("%d bytes follow", len(b)-r.at))
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// A reader takes a message apart. After an error it reads zeros.
type reader struct {
	b     []byte
	at    int
	kind  Type
	flags byte
	code  uint16
	err   error
}

// wrong keeps the first error, and returns it.
func (r *reader) wrong(field string, at int, reason string) error {
	if r.err == nil {
		r.err = &Error{r.kind, field, at, reason}
	}
	return r.err
}

// read takes n bytes.
func (r *reader) read(field string, n int) []byte {
	if r.err == nil && len(r.b)-r.at < n {
		_ = r.wrong(field, r.at, fmt.Sprintf("%d bytes are left of %d", len(r.b)-r.at, n))
	}
	if r.err != nil {
		return make([]byte, n)
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

func (r *reader) u16(field string) uint16 { return binary.BigEndian.Uint16(r.read(field, 2)) }
func (r *reader) u32(field string) uint32 { return binary.BigEndian.Uint32(r.read(field, 4)) }
func (r *reader) u64(field string) uint64 { return binary.BigEndian.Uint64(r.read(field, 8)) }
func (r *reader) digest() (d Digest)      { copy(d[:], r.read("Digest", len(d))); return d }
func (r *reader) flag(i int) bool         { return r.flags&(1<<i) != 0 }

// text takes a text of UTF-8 with up to MaxText bytes.
func (r *reader) text(field string) string {
	at := r.at
	n := int(r.u16(field))
	if n > MaxText {
		_ = r.wrong(field, at, fmt.Sprintf("%d bytes, of at most %d", n, MaxText))
		return ""
	}
	s := string(r.read(field, n))
	if r.err == nil && !utf8.ValidString(s) {
		_ = r.wrong(field, at, "not UTF-8")
	}
	return s
}

// path takes a path that CheckPath allows.
func (r *reader) path(empty bool) string {
	at := r.at
	p := r.text("Path")
	if p == "" && empty || r.err != nil {
		return p
	}
	if err := CheckPath(p); err != nil {
		_ = r.wrong("Path", at, err.Error())
	}
	return p
}

// want refuses a value.
func (r *reader) want(ok bool, field, reason string) {
	if r.err == nil && !ok {
		_ = r.wrong(field, r.at, reason)
	}
}

func (r *reader) beginMessage() Message {
	return Begin{
		Put: r.flag(0), Force: r.flag(1), Resume: r.flag(2), Recursive: r.flag(3), Into: r.flag(4),
		Rate: r.u64("Rate"), Path: r.path(true),
	}
}

func (r *reader) offer() Message {
	m := Offer{Kind: Kind(r.code), Mode: r.u32("Mode"), Nanoseconds: r.u32("Nanoseconds"),
		Seconds: int64(r.u64("Seconds")), Size: r.u64("Size")}
	r.want(m.Kind != 0, "Code", "no kind")
	r.want(m.Mode <= 0o777, "Mode", "more than permissions")
	r.want(m.Nanoseconds < 1e9, "Nanoseconds", "a second or more")
	r.want(m.Size <= MaxSize && (m.Size == 0 || m.Kind == File), "Size", "not that of a file")
	if m.Kind == Missed { // it is not to be made, so that any name will do
		m.Path = r.text("Path")
	} else {
		m.Path = r.path(false)
	}
	m.Detail = r.text("Detail")
	r.want(m.Detail == "" || m.Kind == Link || m.Kind == Missed, "Detail", "nobody reads it")
	return m
}

func (r *reader) answer() Message { return Answer{Code: Code(r.code), Text: r.text("Text")} }

func (r *reader) grant() Message {
	m := Grant{Place: r.flag(0), Have: r.flag(1), Offset: r.u64("Offset"), Length: r.u32("Length"), STag: r.u32("STag"),
		TO: r.u64("TO"), Digest: r.digest()}
	r.want(m.Place || m.Have, "Flags", "neither memory nor a digest")
	r.want(m.Place || m.STag == 0 && m.TO == 0, "STag", "no memory is offered")
	r.want(m.Have || m.Digest == Digest{}, "Digest", "nothing is compared")
	r.block(m.Offset, m.Length)
	r.want(m.TO+uint64(m.Length) >= m.TO, "TO", "the block wraps around")
	return m
}

// block refuses what is in no file.
func (r *reader) block(offset uint64, length uint32) {
	r.want(length != 0 && length <= MaxBlock, "Length", "of no block")
	r.want(offset <= MaxSize, "Offset", "in no file")
}

func (r *reader) wrote() Message {
	m := Wrote{State: State(r.code), Offset: r.u64("Offset"), Length: r.u32("Length"),
		Digest: r.digest(), Text: r.text("Text")}
	r.want(m.State != 0, "Code", "no state")
	r.block(m.Offset, m.Length)
	r.want(m.State == Lost || m.Text == "", "Text", "nobody reads it")
	return m
}

func (r *reader) done() Message { return Done{Changed: r.flag(0), Digest: r.digest()} }
