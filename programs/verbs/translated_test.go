//go:build linux && (amd64 || arm64)

package verbs

import (
	"math"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// TestSolicits: the flag is for all that completes a receive of the peer's.
func TestSolicits(t *testing.T) {
	for _, opcode := range []uint32{wrSend, wrSendImm, wrSendInv, wrWriteImm} {
		want(t, "solicited", (&SendWR{Opcode: opcode, Flags: sendSolicited}).solicits(), true)
		want(t, "without the flag", (&SendWR{Opcode: opcode}).solicits(), false)
	}
}

// TestFence: the flag is that of the request, also of one that binds a window or invalidates.
func TestFence(t *testing.T) {
	q := roce(t)
	r := q.region("12345678", accessLocalWrite|accessRemoteWrite|accessMWBind)
	for _, fence := range []bool{true, false} {
		for _, wr := range []*SendWR{
			{Opcode: wrWrite, RemoteAddr: r.at(), RKey: r.rkey}, {Opcode: wrLocalInv, Imm: r.rkey}, q.window(2).bindTo(r, accessRemoteWrite),
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
	must(t, b.d.ReregisterMR(r.mr, changeTranslation|changeAccess, 0, unsafe.Pointer(&r.memory[0]), 4, accessLocalWrite|accessRemoteRead|accessZeroBased))
	to := a.region("....", accessLocalWrite)
	wc := a.did(&SendWR{Opcode: wrRead, SGL: to.sge(), SGEs: 1, RKey: r.rkey})
	want(t, "octets", string(to.memory[:wc.ByteLen]), "text")
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
