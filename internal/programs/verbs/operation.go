//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"

	"github.com/goiwarp/iwarp"
)

// Operations of a SendWR: enum ibv_wr_opcode.
const (
	wrWrite       = 0
	wrWriteImm    = 1
	wrSend        = 2
	wrSendImm     = 3
	wrRead        = 4
	wrCompareSwap = 5
	wrFetchAdd    = 6
	wrLocalInv    = 7
	wrBindMW      = 8
	wrSendInv     = 9
)

// Operations of a WC: enum ibv_wc_opcode.
const (
	wcSend        = 0
	wcWrite       = 1
	wcRead        = 2
	wcCompareSwap = 3
	wcFetchAdd    = 4
	wcBindMW      = 5
	wcLocalInv    = 6
	wcRecv        = 1 << 7
	wcRecvImm     = 1<<7 + 1
)

// An operation is what a work request of libibverbs is to package iwarp.
type operation struct {
	op        iwarp.Op
	completes uint32 // enum ibv_wc_opcode
	building  uint64 // enum ibv_qp_create_send_ops_flags: the bit of those who build requests one by one
	solicits  bool   // the peer's completion may be solicited
	inline    bool   // its data may be copied when it is posted
	prefixed  bool   // it is only where Sends have a prefix
	datagram  bool   // a QP of datagrams has it, too
	noData    bool   // it has no scatter/gather elements

	// fill translates what only this operation has. to has what all have.
	fill func(q *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno
}

// operations is the table of operations, by enum ibv_wr_opcode: posts, completions, and what C offers programs go by
// it.
var operations = [...]*operation{
	wrWrite: {op: iwarp.OpWrite, completes: wcWrite, building: 1 << 0, inline: true, fill: fillRemote},
	wrWriteImm: {op: iwarp.OpWriteImm, completes: wcWrite, building: 1 << 1, solicits: true,
		inline: true, fill: fillWriteImm},
	wrSend: {op: iwarp.OpSend, completes: wcSend, building: 1 << 2, solicits: true, inline: true,
		datagram: true, fill: fillSend},
	wrSendImm: {
		op: iwarp.OpSend, completes: wcSend, building: 1 << 3, solicits: true, inline: true, datagram: true,
		prefixed: true, fill: fillSendImm,
	},
	wrRead:        {op: iwarp.OpRead, completes: wcRead, building: 1 << 4, fill: fillRemote},
	wrCompareSwap: {op: iwarp.OpCompareSwap, completes: wcCompareSwap, building: 1 << 5, fill: fillCompareSwap},
	wrFetchAdd:    {op: iwarp.OpFetchAdd, completes: wcFetchAdd, building: 1 << 6, fill: fillFetchAdd},
	wrLocalInv: {op: iwarp.OpLocalInvalidate, completes: wcLocalInv, building: 1 << 7,
		noData: true, fill: fillInvalidation},
	wrBindMW:  {op: iwarp.OpBindMW, completes: wcBindMW, building: 1 << 8, noData: true, fill: fillBinding},
	wrSendInv: {op: iwarp.OpSend, completes: wcSend, building: 1 << 9, solicits: true, inline: true, fill: fillSendInv},
}

// operation returns the request's, and nil if there is no such.
func (w *SendWR) operation() *operation {
	if w.Opcode >= uint32(len(operations)) {
		return nil
	}
	return operations[w.Opcode]
}

// opcodeOf returns what libibverbs calls the completion of an operation.
func opcodeOf(op iwarp.Op) uint32 {
	if op == iwarp.OpRecv {
		return wcRecv
	}
	for _, o := range operations {
		if o != nil && o.op == op {
			return o.completes
		}
	}
	return wcSend
}

// SendOps returns which requests programs may build one by one (ibv_create_qp_ex), as bits of enum
// ibv_qp_create_send_ops_flags: of a QP of datagrams, or of one that has connections.
func (d *Device) SendOps(datagrams bool) (bits uint64) {
	for _, o := range operations {
		switch {
		case o == nil, datagrams && !o.datagram, !datagrams && o.prefixed && !d.roce:
		default:
			bits |= o.building
		}
	}
	return bits
}

func fillSend(*QP, *SendWR, *iwarp.SendWR) syscall.Errno { return fine }

func fillSendInv(_ *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	to.Invalidate = wr.Imm
	return fine
}

// fillSendImm: a Send with Immediate Data is EOPNOTSUPP where the connection has none.
func fillSendImm(q *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	if !q.sendsImmediate() {
		return q.refuseImmediate()
	}
	to.Prefix = wr.prefix()
	return fine
}

func fillRemote(_ *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	to.Remote = iwarp.Remote{STag: wr.RKey, TO: wr.RemoteAddr}
	return fine
}

func fillWriteImm(q *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	to.Immediate = wr.immediate()
	return fillRemote(q, wr, to)
}

func fillFetchAdd(_ *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	a := wr.atomic()
	to.Add, to.Remote = a.CompareAdd, iwarp.Remote{STag: a.RKey, TO: a.RemoteAddr}
	return fine
}

func fillCompareSwap(_ *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	a := wr.atomic()
	to.Compare, to.Swap, to.Remote = a.CompareAdd, a.Swap, iwarp.Remote{STag: a.RKey, TO: a.RemoteAddr}
	return fine
}

func fillInvalidation(q *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	return q.device.invalidation(wr.Imm, to)
}

func fillBinding(q *QP, wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	return q.device.bindWindow(wr, to)
}
