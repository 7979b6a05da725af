//go:build linux && (amd64 || arm64)

package verbs

import (
	"math"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// TestSolicits: the flag is for all that completes a receive of the peer's, and for nothing else.
func TestSolicits(t *testing.T) {
	q, _ := met(t)
	for opcode, solicits := range map[uint32]bool{wrSend: true, wrSendImm: true, wrSendInv: true, wrWriteImm: true,
		wrWrite: false, wrRead: false} {
		for _, flags := range []uint32{0, sendSolicited} {
			var to iwarp.SendWR
			must(t, new(sends).add(q.inner(), &SendWR{Opcode: opcode, Flags: flags}, &to))
			want(t, "solicited", to.Solicited, solicits && flags != 0)
		}
	}
}

// TestUnknownOperations: numbers without an operation are refused.
func TestUnknownOperations(t *testing.T) {
	q := roce(t)
	for _, opcode := range []uint32{wrSendInv + 1, uint32(len(operations)), 1 << 31} {
		want(t, "an error", new(sends).add(q.inner(), &SendWR{Opcode: opcode}, new(iwarp.SendWR)), syscall.EINVAL)
	}
}

// TestSendOps: what may be built one by one, as the bits of enum ibv_qp_create_send_ops_flags.
func TestSendOps(t *testing.T) {
	const sendImm, old = 1 << 3, 1<<10 - 1 // those of the first libibverbs that has such QPs
	want(t, "as siw", NewDevice(Config{}).SendOps(false)&old, uint64(old&^sendImm))
	want(t, "as RoCE", NewDevice(Config{RoCE: true}).SendOps(false)&old, uint64(old))
	want(t, "of datagrams", NewDevice(Config{RoCE: true}).SendOps(true), uint64(1<<2|sendImm))
}

// TestFence: the flag is that of the request, also of one that binds a window or invalidates.
func TestFence(t *testing.T) {
	q := roce(t)
	r := q.region("12345678", accessLocalWrite|accessRemoteWrite|accessMWBind)
	for _, fence := range []bool{true, false} {
		for _, wr := range []*SendWR{
			{Opcode: wrWrite, RemoteAddr: r.at(), RKey: r.key}, {Opcode: wrLocalInv, Imm: r.key},
			q.window(2).bindTo(r, accessRemoteWrite),
		} {
			if fence {
				wr.Flags |= sendFence
			}
			var to iwarp.SendWR
			must(t, new(sends).add(q.inner(), wr, &to))
			want(t, to.Op.String(), to.Fence, fence)
		}
	}
}

// TestBindWithoutRight: a window is bound to a region only that may be bound to.
func TestBindWithoutRight(t *testing.T) {
	a, _ := met(t)
	r := a.region("12345678", accessLocalWrite|accessRemoteWrite)
	_, errno := a.d.PostSend(a.qp, a.window(2).bindTo(r, accessRemoteWrite))
	want(t, "a binding", errno, syscall.EINVAL)
}

// TestReregisterZeroBased: a region that is made one of tagged offsets from 0 has these.
func TestReregisterZeroBased(t *testing.T) {
	a, b := met(t)
	r := b.region("text", accessLocalWrite)
	must(t, b.d.ReregisterMR(r.mr, changeTranslation|changeAccess, 0, unsafe.Pointer(&r.memory[0]), 4,
		accessLocalWrite|accessRemoteRead|accessZeroBased))
	to := a.region("....", accessLocalWrite)
	wc := a.did(&SendWR{Opcode: wrRead, SGL: to.sge(), SGEs: 1, RKey: r.key})
	want(t, "bytes", string(to.memory[:wc.ByteLen]), "text")
}

// TestReadInto: a device of RoCE reads into several elements with one completion, and an iWARP device into one.
func TestReadInto(t *testing.T) {
	client, server, _, _ := connect(t)
	a, b := met(t)
	for _, tt := range []struct {
		from, to *queue
		refused  syscall.Errno
	}{{client, server, syscall.EINVAL}, {a, b, fine}} {
		source := tt.to.region("all of this", accessRemoteRead)
		one, other := tt.from.region(".......", accessLocalWrite), tt.from.region("....", accessLocalWrite)
		list := []SGE{*one.sge(), {}, *other.sge()}
		wr := &SendWR{ID: 9, Opcode: wrRead, SGL: &list[0], SGEs: 3, RemoteAddr: source.at(), RKey: source.key}
		_, errno := tt.from.d.PostSend(tt.from.qp, wr)
		want(t, "a Read into two elements", errno, tt.refused)
		if errno == fine {
			want(t, "completion", tt.from.completion(), WC{ID: 9, Opcode: wcRead, ByteLen: 11, QPNum: tt.from.number})
			want(t, "read", string(one.memory)+string(other.memory), "all of this")
			want(t, "another completion", tt.from.d.Poll(tt.from.cq, make([]WC, 1)), 0)
		}
	}
}

// TestRegisterWrapped: memory that would go on at address 0 is none.
func TestRegisterWrapped(t *testing.T) {
	page := uint64(syscall.Getpagesize())
	end := unsafe.Add(unsafe.Pointer(nil), -int(page))
	for _, n := range []uint64{page, page + 1, 2 * page, math.MaxInt64} {
		want(t, "usable", usable(end, n, accessLocalWrite), false)
		want(t, "mapped", mapped(uint64(uintptr(end)), n), false)
	}
}

// TestWakeForSolicited: what is not solicited is no event for who has asked for what is, and does not use that up.
func TestWakeForSolicited(t *testing.T) {
	q := roce(t)
	c := q.d.cqs.get(q.cq)
	must(t, q.d.Arm(q.cq, true))
	c.wakeFor(false)
	want(t, "an event", readable(t, q.fd), false)
	c.wakeFor(true)
	want(t, "an event", readable(t, q.fd), true)
}
