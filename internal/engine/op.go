package engine

import (
	"fmt"

	"github.com/goiwarp/iwarp/rdmap"
)

// Op is what a work request asks for, or what a completion is of.
type Op uint8

const (
	OpSend Op = iota
	OpWrite
	OpRead
	OpLocalInvalidate
	OpReceive
	OpFetchAdd    // the operations of RFC 7306
	OpCompareSwap //
	OpWriteImm    // an RDMA Write and Immediate Data after it
	OpImmediate   // Immediate Data alone
	OpBind        // a Memory Window
	OpFastRegister
)

// Parts are fields of a request for the Send Queue that some operations have, and others refuse.
type Parts uint16

// The fields of iwarp.SendWR.
const (
	PartInline Parts = 1 << iota
	PartSolicited
	PartRemote
	PartPrefix
	PartInvalidate
	PartTarget
	PartImmediate
	PartAdd
	PartSwap // Compare and Swap
	PartMasks
	PartBind
	PartWindow
	PartRegister
)

// PartsOfMemory are the fields that name memory, beside the SGL.
const PartsOfMemory = PartTarget | PartBind | PartWindow | PartRegister

// partNames are their names, with the verb that goes with them, by bit.
var partNames = [...]string{
	"Inline, which is", "Solicited, which is", "Remote, which is", "Prefix, which is",
	"Invalidate, which is", "Target, which is",
	"Immediate, which is", "Add, which is", "Compare or Swap, which are", "Masks, which are",
	"Bind, which is", "Window, which is",
	"Register, which is",
}

// An OpInfo is what package iwarp, its tools and the engine have to know of an operation.
type OpInfo struct {
	Name    string       // for people
	Ident   string       // of the constant of package iwarp
	Call    string       // the call that posts it and waits, in words; empty if there is none
	Sends   rdmap.Opcode // the message that it sends, or the last of them, without Solicited Event and Invalidate
	Local   bool         // it sends nothing
	Asked   string       // with an article, what it is, if the peer answers it; it counts toward the ORD then
	Fetches bool         // its memory is written to
	MaxSGE  int          // how many elements its memory may have
	Result  int          // how many bytes its memory has, if any; 0: any number
	Takes   Parts        // which fields of a request are for it
}

// anAtomic is what the Atomic Operations have in common.
const anAtomic = "an Atomic Operation"

// ops is the table of operations. CONTRIBUTING.md tells how to add one.
var ops = [...]OpInfo{
	OpSend: {
		Name: "Send", Ident: "OpSend", Call: "send", Sends: rdmap.OpSend, MaxSGE: MaxSGE,
		Takes: PartInline | PartSolicited | PartPrefix | PartInvalidate,
	},
	OpWrite: {
		Name: "Write", Ident: "OpWrite", Call: "write", Sends: rdmap.OpWrite, MaxSGE: MaxSGE,
		Takes: PartInline | PartRemote,
	},
	OpRead: {
		Name: "Read", Ident: "OpRead", Call: "read", Sends: rdmap.OpReadRequest, Asked: "an RDMA Read",
		Fetches: true, MaxSGE: MaxSGE,
		Takes: PartRemote | PartTarget,
	},
	OpLocalInvalidate: {
		Name: "Local Invalidate", Ident: "OpLocalInvalidate", Local: true, MaxSGE: MaxSGE,
		Takes: PartInline | PartInvalidate | PartTarget | PartWindow,
	},
	OpReceive: {Name: "Recv", Ident: "OpRecv"},
	OpFetchAdd: {
		Name: "FetchAdd", Ident: "OpFetchAdd", Call: "fetch and add", Sends: rdmap.OpAtomicRequest, Asked: anAtomic,
		Fetches: true, MaxSGE: 1, Result: atomicLen, Takes: PartRemote | PartAdd | PartMasks,
	},
	OpCompareSwap: {
		Name: "CompareSwap", Ident: "OpCompareSwap", Call: "compare and swap",
		Sends: rdmap.OpAtomicRequest, Asked: anAtomic,
		Fetches: true, MaxSGE: 1, Result: atomicLen, Takes: PartRemote | PartSwap | PartMasks,
	},
	OpWriteImm: {
		Name: "Write with Immediate", Ident: "OpWriteImm", Call: "write with immediate",
		Sends: rdmap.OpImmediateData, MaxSGE: MaxSGE,
		Takes: PartInline | PartRemote | PartSolicited | PartImmediate,
	},
	OpImmediate: {Name: "Immediate Data", Ident: "OpImmediate", Sends: rdmap.OpImmediateData,
		Takes: PartSolicited | PartImmediate},
	OpBind: {Name: "Bind Memory Window", Ident: "OpBindMW", Local: true, Takes: PartWindow | PartBind},
	OpFastRegister: {
		Name: "Fast Register", Ident: "OpFastRegister", Local: true, Takes: PartTarget | PartRegister,
	},
}

// Ops is how many operations there are: all lie below it.
const Ops = len(ops)

// noOp is the entry of what is no operation.
var noOp OpInfo

// Info returns what is told of the operation; it is not to be changed.
func (o Op) Info() *OpInfo {
	if int(o) >= Ops {
		return &noOp
	}
	return &ops[o]
}

// String names the operation.
func (o Op) String() string {
	if info := o.Info(); info != &noOp {
		return info.Name
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Has reports whether a field of a request is for the operation.
func (o Op) Has(p Parts) bool { return o.Info().Takes&p != 0 }

// Extension reports whether it is an operation of RFC 7306.
func (o Op) Extension() bool { return o.Info().Sends.Extension() }

func (o Op) local() bool { return o.Info().Local }
