package rdmap

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A Field is one field of the RDMAP header of a message, as it came.
type Field struct {
	Name  string // the RFC's, as far as a line of text has room for it
	Key   string // its name in JSON; empty if the header has this field alone
	Len   int    // in bytes
	Text  string // the value in words
	Value any    // the value in JSON: a uint64, or what names it
}

// layout is how a header has a field, all of which are numbers in network order.
type layout struct {
	name, key string
	len       int                            // in bytes
	verb      string                         // of fmt, for the value
	value     func(v uint64) string          // what names the value; nil: verb shows it
	rename    func(header []byte) (n string) // the name, where it depends on what else the header says; nil: name
}

// Fields takes the RDMAP header apart that a message of the opcode begins its payload with. There are none
// if it is too short, or if the opcode's header is not a list of fields: none, or a Terminate's.
func (o Opcode) Fields(payload []byte) []Field { return o.entry().cut(payload) }

func (e *entry) cut(payload []byte) []Field {
	if !e.has(payload) {
		return nil
	}
	fields, at := make([]Field, 0, len(e.fields)), payload
	for i := range e.fields {
		l := &e.fields[i]
		fields = append(fields, l.field(at[:l.len], payload))
		at = at[l.len:]
	}
	return fields
}

// requestID is the key of a Request Identifier, which a response repeats.
const requestID = "id"

// RequestID returns the Request Identifier in the RDMAP header that a message of the opcode begins its payload with,
// and whether it has one: whatever the peer answers has, except for a Read, and so have the answers.
func (o Opcode) RequestID(payload []byte) (id uint32, ok bool) {
	e, at := o.entry(), 0
	for i := range e.fields {
		if e.fields[i].key == requestID && len(payload) >= e.HeaderLen {
			return binary.BigEndian.Uint32(payload[at:]), true
		}
		at += e.fields[i].len
	}
	return 0, false
}

// has reports whether the payload begins with a header that is a list of fields.
func (e *entry) has(payload []byte) bool { return len(e.fields) > 0 && len(payload) >= e.HeaderLen }

func (l *layout) field(b, header []byte) Field {
	var n [8]byte
	copy(n[8-len(b):], b)
	v := binary.BigEndian.Uint64(n[:])
	f := Field{Name: l.name, Key: l.key, Len: l.len, Value: v}
	if l.value == nil {
		f.Text = fmt.Sprintf(l.verb, v)
	} else {
		f.Text = l.value(v)
		f.Value = f.Text
	}
	if l.rename != nil {
		f.Name = l.rename(header)
	}
	return f
}

// Describe returns the RDMAP header in words that a message of the opcode begins its payload with, and is empty
// where Fields has none.
func (o Opcode) Describe(payload []byte) string { return o.entry().describe(payload) }

func (e *entry) describe(payload []byte) string {
	if !e.has(payload) {
		return ""
	}
	if e.text != nil {
		return e.text(payload)
	}
	var words []string
	for _, f := range e.cut(payload) {
		words = append(words, wording.If(f.Key == "", "", f.Key+" ")+f.Text)
	}
	return strings.Join(words, " ")
}
