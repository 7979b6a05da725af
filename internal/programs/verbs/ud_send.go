//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// SendDatagrams sends a list of datagrams. After an error bad is the one that it is about, and those before it are
// sent. It is EINVAL before RTS, and for what is longer than the MTU, and ENOMEM while the Send Queue is full.
func (d *Device) SendDatagrams(h Handle, wr *SendWR) (bad *SendWR, errno syscall.Errno) {
	u := d.uds.get(h)
	if u == nil {
		return wr, syscall.EINVAL
	}
	u.sending.Lock()
	defer u.sending.Unlock()
	for ; wr != nil; wr = wr.Next {
		if errno := u.send(wr); errno != fine {
			return wr, errno
		}
	}
	return nil, fine
}

// judge says where a request goes, if it may be sent after others that are not complete; nowhere, if it will be
// flushed.
func (u *UD) judge(wr *SendWR, ahead int32) (*AH, syscall.Errno) {
	u.mu.Lock()
	state := u.state
	u.mu.Unlock()
	if state >= StateRTS && u.sent.Load()+ahead >= u.sendDepth {
		return nil, syscall.ENOMEM
	}
	if state == StateErr {
		return nil, fine
	}
	args := wr.datagram()
	if o := wr.operation(); state != StateRTS || o == nil || !o.datagram || args.AH == nil {
		return nil, syscall.EINVAL
	}
	to := u.device.ahs.find(args.AH.Handle)
	list, ok := elements(wr.SGL, wr.SGEs, u.sendSGEs)
	if to == nil || to.pd != u.pd || !ok {
		return nil, syscall.EINVAL
	}
	n := total(list)
	if n > datagram.MTU || wr.Flags&sendInline != 0 && n > uint64(u.maxInline) {
		return nil, syscall.EINVAL
	}
	return to, fine
}

func (u *UD) send(wr *SendWR) syscall.Errno {
	to, errno := u.judge(wr, 0)
	if errno != fine {
		return errno
	}
	if to == nil {
		u.addSent(u.flushed(wr.ID), true)
		return fine
	}
	args := wr.datagram()
	list, _ := elements(wr.SGL, wr.SGEs, u.sendSGEs) // which judge has looked at
	qkey := args.QKey
	if qkey&ownQKey != 0 {
		u.mu.Lock()
		qkey = u.qkey
		u.mu.Unlock()
	}
	h := u.header(wr, args.Number, qkey, to)
	u.packet = h.Append(u.packet[:0], int(total(list)))
	return u.sendPacket(wr, list, netip.AddrPortFrom(to.addr, portOfNumber(h.Destination)), wr.Flags&sendInline != 0)
}

// ownQKey is in a Q_Key if that of the QP itself is meant: "If the high-order bit of the Q_Key is set, the Q_Key of the
// QP is used".
const ownQKey = 1 << 31

func (u *UD) header(wr *SendWR, number, qkey uint32, to *AH) datagram.Header {
	h := datagram.Header{
		Destination: number & ulpdata.QPNumberMask, Source: u.number, QKey: qkey, To: datagram.GID(to.gid),
		Solicited: wr.Flags&sendSolicited != 0,
	}
	if wr.Opcode == wrSendImm {
		h.HasImmediate = true
		binary.NativeEndian.PutUint32(h.Immediate[:], wr.Imm) // it is in network order there
	}
	return h
}

// sendPacket appends the payload to the header, sends both and completes the request. What the kernel does not send is
// lost, as on the way.
func (u *UD) sendPacket(wr *SendWR, list []SGE, to netip.AddrPort, inline bool) syscall.Errno {
	status := iwarp.StatusSuccess
	if inline {
		var ok bool
		if u.packet, ok = gatherInline(u.packet, list); !ok {
			return syscall.EFAULT
		}
	} else {
		u.packet, status = u.device.gather(u.packet, u.pd, list)
	}
	if status == iwarp.StatusSuccess {
		_ = u.port.socket.Send(to, u.packet)
	}
	if status != iwarp.StatusSuccess || u.signalAll || wr.Flags&sendSignaled != 0 {
		u.addSent(WC{ID: wr.ID, Status: statusOf(status), Opcode: wcSend, QPNum: u.number},
			status != iwarp.StatusSuccess)
	}
	if status != iwarp.StatusSuccess {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.fail()
	}
	return fine
}
