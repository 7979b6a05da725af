//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
)

// RecvDatagrams posts a list of receives, as PostRecv: ENOMEM if there is no room. Each has room for the addresses of
// the datagram, [datagram.RouteLen] bytes, before the payload.
func (d *Device) RecvDatagrams(h Handle, wr *RecvWR) (bad *RecvWR, errno syscall.Errno) {
	u := d.uds.get(h)
	if u == nil {
		return wr, syscall.EINVAL
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for wr != nil && errno == fine {
		if errno = u.recv(wr); errno == fine {
			wr = wr.Next
		}
	}
	return wr, errno
}

func (u *UD) recv(wr *RecvWR) syscall.Errno {
	list, ok := elements(wr.SGL, wr.SGEs, u.recvSGEs)
	switch {
	case u.state == StateReset || !ok:
		return syscall.EINVAL
	case u.state == StateErr:
		u.recvCQ.complete(added{WC: u.flushed(wr.ID)}, true)
		return fine
	case u.count == len(u.recvs):
		return syscall.ENOMEM
	}
	r := &u.recvs[(u.first+u.count)%len(u.recvs)]
	r.id, r.list = wr.ID, append(r.list[:0], list...)
	u.count++
	return fine
}

// receive places a datagram that has come in the oldest receive. One with another Q_Key is dropped, and so is one for
// which there is no receive, or not room enough in it, as Linux's rxe does (InfiniBand has it in class D of the
// responder's faults, "silently dropped"): whoever may send to the QP must not be able to end it. The receive stays for
// the next.
func (u *UD) receive(h *datagram.Header, from netip.Addr, payload []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state != StateRTR && u.state != StateRTS || h.QKey != u.qkey || u.count == 0 {
		return
	}
	if total(u.recvs[u.first].list) < uint64(datagram.RouteLen+len(payload)) {
		return
	}
	r := u.next()
	route := datagram.RouteOf(from.As16(), h.To, len(payload))
	status := u.device.scatter(u.pd, r.list, route[:], payload)
	if status != iwarp.StatusSuccess {
		wc := u.flushed(r.id)
		wc.Status = statusOf(status)
		u.recvCQ.complete(added{WC: wc}, true)
		u.fail()
		return
	}
	u.recvCQ.complete(added{WC: u.received(r.id, h, len(payload), kindOf(&route))}, h.Solicited)
}

func (u *UD) received(id uint64, h *datagram.Header, n int, kind uint8) WC {
	wc := WC{
		ID: id, Opcode: wcRecv, ByteLen: uint32(datagram.RouteLen + n), QPNum: u.number, SrcQP: h.Source,
		Flags: wcWithRoute, SL: kind,
	}
	if h.HasImmediate {
		wc.Flags |= wcWithImm
		wc.Invalidated = binary.NativeEndian.Uint32(h.Immediate[:])
	}
	return wc
}

// What devices of RoCE say of the packet in place of a service level. "For RoCEv2, the remote address information
// comprises the source L2 Address and a flag that indicates if the received frame is an IPv4, IPv6 or RoCE packet"
// (InfiniBand, annex 17), which UCX relies on.
const (
	overUDP  = 1 << 3
	overIPv6 = overUDP | 1
	overIPv4 = overUDP | 2
)

func kindOf(r *datagram.Route) uint8 {
	if r.IPv4() {
		return overIPv4
	}
	return overIPv6
}
