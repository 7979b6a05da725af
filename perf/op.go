package perf

import (
	"fmt"
	"strings"
)

// Op is an operation to measure.
type Op uint8

// The operations. The zero value is none of them.
const (
	Send Op = iota + 1
	Write
	Read
)

var opNames = [...]string{Send: "Send", Write: "Write", Read: "Read"}

// AllOps are the operations in the order in which they are measured.
func AllOps() []Op { return []Op{Send, Write, Read} }

// ParseOp returns the operation of that name, in any case.
func ParseOp(name string) (Op, error) {
	for _, op := range AllOps() {
		if strings.EqualFold(name, op.String()) {
			return op, nil
		}
	}
	return 0, fmt.Errorf("perf: no operation %q: there are Send, Write and Read", name)
}

// String returns the operation's name.
func (o Op) String() string {
	if o < Send || o > Read {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return opNames[o]
}

// MarshalText returns the operation's name.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText sets the operation of that name, in any case.
func (o *Op) UnmarshalText(text []byte) (err error) {
	*o, err = ParseOp(string(text))
	return err
}

// Quantity is what a slice measures.
type Quantity string

// The quantities.
const (
	Bandwidth Quantity = "bandwidth"
	Latency   Quantity = "latency"
)

// Transport is what a slice runs over.
type Transport string

// The transports.
const (
	IWARP Transport = "iwarp"
	TCP   Transport = "tcp"
)
