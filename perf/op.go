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
	WriteImm // Write with Immediate, of RFC 7306
	Atomic   // FetchAdd of 0, of RFC 7306, always on 8 octets
)

var opNames = [...]string{Send: "Send", Write: "Write", Read: "Read", WriteImm: "Write-Imm", Atomic: "Atomic"}

// AllOps are the operations that are measured if nothing is said, in that order: not all that there are, but those that
// every peer knows. WriteImm and Atomic are measured if they are asked for.
func AllOps() []Op { return []Op{Send, Write, Read} }

// ParseOp returns the operation of that name, in any case. The error is an *OptionError.
func ParseOp(name string) (Op, error) {
	for op := Send; op.valid(); op++ {
		if strings.EqualFold(name, op.String()) {
			return op, nil
		}
	}
	return 0, &OptionError{"op", fmt.Sprintf("no operation %.40q: there are Send, Write, Read, Write-Imm and Atomic", name)}
}

func (o Op) valid() bool { return o >= Send && o <= Atomic }

// fetches reports whether the messages go to the end that asks for them: no program acts at
// their source, and what they cost is outstanding within the ORD.
func (o Op) fetches() bool { return o == Read || o == Atomic }

// tells reports whether each message completes a receive.
func (o Op) tells() bool { return o == Send || o == WriteImm }

// String returns the operation's name.
func (o Op) String() string {
	if !o.valid() {
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
