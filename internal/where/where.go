// Package where has expressions that choose events of a decoded capture by their fields, as in
// "op=send and bytes>4K or finding>=warning".
package where

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/rdmap"
)

// An Expr is an expression. The zero value is true of nothing.
type Expr struct {
	is condition
}

// A condition tells whether something is true of an event.
type condition func(*event) bool

// An event is what a capture has, by its fields. Those that it does not have are empty.
type event struct {
	op       []string // names
	stag     []uint64
	msn      []uint64
	bytes    []uint64
	latency  []uint64 // nanoseconds
	finding  []string // its name
	severity []uint64
}

// clear makes it one without fields.
func (e *event) clear() {
	e.op, e.stag, e.msn, e.bytes, e.latency = e.op[:0], e.stag[:0], e.msn[:0], e.bytes[:0], e.latency[:0]
	e.finding, e.severity = e.finding[:0], e.severity[:0]
}

// fpdu fills in the fields of an FPDU.
func (e *event) fpdu(f *decode.FPDU) {
	e.clear()
	if !f.HasSegment {
		return
	}
	e.op = append(e.op, names[f.Op&15])
	e.bytes = append(e.bytes, uint64(len(f.Segment.Payload)))
	switch info, _ := f.Op.Info(); {
	case f.Segment.Tagged:
		e.stag = append(e.stag, uint64(f.Segment.STag))
	case info.Invalidate:
		e.stag = append(e.stag, uint64(f.Segment.ULP))
	}
	if !f.Segment.Tagged {
		e.msn = append(e.msn, uint64(f.Segment.MSN))
	}
	if r := f.ReadRequest; r != nil {
		e.stag = append(e.stag, uint64(r.SinkSTag), uint64(r.SrcSTag))
		e.bytes[0] = uint64(r.Size)
	}
}

// read fills in those of a Read that is complete.
func (e *event) read(r *decode.Read) {
	e.clear()
	e.op = append(e.op, names[rdmap.OpReadRequest])
	e.stag = append(e.stag, uint64(r.SinkSTag), uint64(r.SrcSTag))
	e.bytes = append(e.bytes, uint64(r.Size))
	e.latency = append(e.latency, uint64(max(r.Latency(), 0)))
}

// found fills in those of a finding.
func (e *event) found(f *decode.Finding) {
	e.clear()
	e.finding = append(e.finding, f.Name)
	e.severity = append(e.severity, uint64(f.Severity))
}

// names are those of the opcodes in expressions, as write and send-with-invalidate.
var names = func() (all [16]string) {
	for op := range all {
		name := strings.TrimPrefix(strings.ToLower(rdmap.Opcode(op).String()), "rdma ")
		all[op] = strings.ReplaceAll(name, " ", "-")
	}
	return all
}()

// isOp reports whether a name is one of an opcode, or the first words of it, as send is of all Sends.
func isOp(name, of string) bool {
	return name == of || strings.HasPrefix(name, of) && name[len(of)] == '-'
}

// A Filter is a [decode.Consumer] that hands on what an expression is true of, and the connections of it.
type Filter struct {
	decode.Ignore

	// Ends hands on the end of connections that were handed on.
	Ends bool

	expr  Expr
	to    decode.Consumer
	told  map[*decode.Connection]bool
	event event
}

// NewFilter returns one.
func NewFilter(expr Expr, to decode.Consumer) *Filter {
	return &Filter{expr: expr, to: to, told: map[*decode.Connection]bool{}}
}

// matches reports whether the event is to be handed on, and tells of its connection before.
func (f *Filter) matches(c *decode.Connection) bool {
	if f.expr.is == nil || !f.expr.is(&f.event) {
		return false
	}
	if !f.told[c] {
		f.told[c] = true
		f.to.Found(c)
	}
	return true
}

// FPDU is part of decode.Consumer.
func (f *Filter) FPDU(c *decode.Connection, e *decode.FPDU) {
	if f.event.fpdu(e); f.matches(c) {
		f.to.FPDU(c, e)
	}
}

// Read is part of decode.Consumer.
func (f *Filter) Read(c *decode.Connection, e *decode.Read) {
	if f.event.read(e); f.matches(c) {
		f.to.Read(c, e)
	}
}

// Finding is part of decode.Consumer.
func (f *Filter) Finding(c *decode.Connection, e *decode.Finding) {
	if f.event.found(e); f.matches(c) {
		f.to.Finding(c, e)
	}
}

// Ended is part of decode.Consumer.
func (f *Filter) Ended(c *decode.Connection) {
	if f.Ends && f.told[c] {
		f.to.Ended(c)
	}
	delete(f.told, c)
}

// A number is a field whose values are compared as numbers.
type number struct {
	values func(*event) []uint64
	parse  func(text string) (uint64, error)
	want   string // what a value is
}

// fields are the names of all.
var fields = []string{"op", "stag", "msn", "bytes", "latency", "finding"}

// numbers are the fields that are.
var numbers = map[string]number{
	"stag":    {func(e *event) []uint64 { return e.stag }, parseNumber, "a number, such as 0x1234"},
	"msn":     {func(e *event) []uint64 { return e.msn }, parseNumber, "a number"},
	"bytes":   {func(e *event) []uint64 { return e.bytes }, parseSize, "a number of bytes, such as 4096 or 4K"},
	"latency": {func(e *event) []uint64 { return e.latency }, parseTime, "a time, such as 50us, 1.5ms or 2s"},
}

// severities are the words that finding is compared with, the least first.
var severities = []string{decode.Note.String(), decode.Warning.String(), decode.Error.String()}

// errNegative is about a time that nothing takes.
var errNegative = errors.New("it is negative")

func parseTime(text string) (uint64, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errNegative
	}
	return uint64(d), err
}

// compare returns the condition that a value of a field is in a relation to another.
func compare(values func(*event) []uint64, relation string, to uint64) condition {
	if relation == "!=" {
		return func(e *event) bool { return len(values(e)) > 0 && !slices.Contains(values(e), to) }
	}
	holds := relations[relation]
	return func(e *event) bool {
		return slices.ContainsFunc(values(e), func(v uint64) bool { return holds(v, to) })
	}
}

// relations are those that numbers may be in, but for !=.
var relations = map[string]func(a, b uint64) bool{
	"=":  func(a, b uint64) bool { return a == b },
	"<":  func(a, b uint64) bool { return a < b },
	"<=": func(a, b uint64) bool { return a <= b },
	">":  func(a, b uint64) bool { return a > b },
	">=": func(a, b uint64) bool { return a >= b },
}
