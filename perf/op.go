package perf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/engine"
)

// Op is an operation to measure.
type Op uint8

// The operations. The zero value is none of them.
const (
	Send Op = iota + 1
	Write
	Read
	WriteImm // Write with Immediate, of RFC 7306
	Atomic   // FetchAdd of 0, of RFC 7306, always on 8 bytes
)

// ops says what each is called, and which work request it is: what that does says the engine's table of operations.
// means says in words what one is that not everyone knows, and how much of a round trip it takes.
var ops = [...]struct {
	name  string
	posts iwarp.Op
	means string
}{
	Send:     {"Send", iwarp.OpSend, ""},
	Write:    {"Write", iwarp.OpWrite, ""},
	Read:     {"Read", iwarp.OpRead, ""},
	WriteImm: {"Write-Imm", iwarp.OpWriteImm, "a Write-Imm is a Write with Immediate, half a round trip each"},
	Atomic:   {"Atomic", iwarp.OpFetchAdd, "an Atomic is a FetchAdd of 0 on 8 bytes, a whole one"},
}

// Ops are the operations that can be measured.
func Ops() (all []Op) {
	for op := Send; op.valid(); op++ {
		all = append(all, op)
	}
	return all
}

// Meanings explains the operations of RFC 7306, if one of them is among those that are measured, in one sentence for
// each. It is empty otherwise.
func Meanings(measured []Op) (all []string) {
	special := func(op Op) bool { return op.valid() && ops[op].means != "" }
	if !slices.ContainsFunc(measured, special) {
		return nil
	}
	for _, op := range Ops() {
		if special(op) {
			all = append(all, ops[op].means)
		}
	}
	return all
}

// AllOps are the operations that are measured if nothing is said, in that order: not all that there are, but those that
// every peer knows. The others are measured if they are asked for.
func AllOps() []Op { return []Op{Send, Write, Read} }

// ParseOp returns the operation of that name, in any case. The error is an *OptionError.
func ParseOp(name string) (Op, error) {
	var names []string
	for _, op := range Ops() {
		if strings.EqualFold(name, op.String()) {
			return op, nil
		}
		names = append(names, op.String())
	}
	last := len(names) - 1
	return 0, &OptionError{"op", fmt.Sprintf("no operation %.40q: there are %s and %s",
		name, strings.Join(names[:last], ", "), names[last])}
}

func (o Op) valid() bool { return o >= Send && int(o) < len(ops) }

// info is what the engine says of the work request: nothing, of what is no operation.
func (o Op) info() *engine.OpInfo {
	if !o.valid() {
		return new(engine.OpInfo)
	}
	return engine.Op(ops[o].posts).Info()
}

// Fetches reports whether the messages go to the end that asks for them: no program acts at
// their source, and what they cost is outstanding within the ORD.
func (o Op) Fetches() bool { return o.info().Fetches }

// tells reports whether each message completes a receive.
func (o Op) tells() bool { return o.info().Takes&engine.PartSolicited != 0 }

// untold reports whether the other end does not learn of a message by itself.
func (o Op) untold() bool { return !o.Fetches() && !o.tells() }

// placed reports whether the other end's memory is named, and immediate whether Immediate Data come with it.
func (o Op) placed() bool    { return o.info().Takes&engine.PartRemote != 0 }
func (o Op) immediate() bool { return o.info().Takes&engine.PartImmediate != 0 }

// size is the only size that messages have, in bytes; 0: any.
func (o Op) size() int { return o.info().Result }

// String returns the operation's name.
func (o Op) String() string {
	if !o.valid() {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return ops[o].name
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
