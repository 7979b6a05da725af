package iwarp

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// String returns number, state and addresses, such as
// "QP 3 (RTS, 10.0.0.1:4711 with 10.0.0.2:7174)". It shows nothing of memory and work.
func (qp *QP) String() string {
	if qp.made() != nil {
		return "no QP"
	}
	qp.mu.Lock()
	state, e := qp.status().state, qp.ends
	qp.mu.Unlock()
	if e == nil {
		return fmt.Sprintf("QP %d (%v)", qp.num, state)
	}
	return fmt.Sprintf("QP %d (%v, %v with %v)", qp.num, state, addrText(e.local), addrText(e.remote))
}

// String returns depth and use, such as "CQ (3 of 256 completions, 2 QPs)".
func (cq *CQ) String() string {
	if cq.made() != nil {
		return "no CQ"
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	s := fmt.Sprintf("CQ (%d of %d completions, %s", cq.ring.Len(), cq.ring.Limit(), wording.Count(cq.used, "QP"))
	switch {
	case cq.overflow:
		s += ", overflowed"
	case cq.closed:
		s += ", closed"
	}
	return s + ")"
}

// String returns number and use, such as "PD 3 (2 QPs, 1 SRQ, 16 MRs)".
func (pd *PD) String() string {
	if pd.made() != nil {
		return "no PD"
	}
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	return fmt.Sprintf("PD %d (%s, %s, %s)", pd.num, wording.Count(pd.users[userQP], "QP"),
		wording.Count(pd.users[userSRQ], "SRQ"), wording.Count(pd.users[userMR], "MR"))
}

// String returns what was completed, and how, such as
// "Recv (work request 7) on QP 3: success, 4096 bytes". A zero WC is "no completion".
func (w WC) String() string {
	if w.QP == nil && w.cause == nil && w.Length == 0 && w.ID == 0 && w.Status == StatusSuccess {
		return "no completion"
	}
	s := fmt.Sprintf("%v (work request %d)", w.Op, w.ID)
	if w.QP != nil {
		s += fmt.Sprintf(" on QP %d", w.QP.num)
	}
	switch {
	case w.Status == StatusSuccess && w.HasImmediate:
		return fmt.Sprintf("%s: %v, Immediate Data %#x after a Write of %s", s, w.Status, w.Immediate,
			wording.Bytes(w.Written))
	case w.Status == StatusSuccess:
		return fmt.Sprintf("%s: %v, %s", s, w.Status, wording.Bytes(w.Length))
	case w.cause != nil:
		return fmt.Sprintf("%s: %v: %s", s, w.Status, text(w.cause))
	}
	return fmt.Sprintf("%s: %v", s, w.Status)
}

// String returns depth and use, such as "SRQ (12 of 512 receives, 2 QPs)".
func (s *SRQ) String() string {
	if s.made() != nil {
		return "no SRQ"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("SRQ (%d of %d receives, %s)", s.work.Len(), s.work.Limit(), wording.Count(s.users, "QP"))
}

// String returns what a log may have: STag, length and rights, such as
// "MR (STag 0x5f31c200, 4096 bytes, RemoteRead|RemoteWrite)", and never the memory.
func (m MR) String() string {
	if m.made() != nil {
		return "no MR"
	}
	valid := ""
	if !m.Valid() {
		valid = ", invalid"
	}
	return fmt.Sprintf("MR (STag %#08x, %s, %v%s)", m.STag(), wording.Bytes(m.Len()), Access(m.region.Access()), valid)
}

// String returns type and STag, and whether the window is bound, such as "MW (type 2, STag 0x5f31c200, not bound)".
func (w *MW) String() string {
	if w.made() != nil {
		return "no MW"
	}
	bound := "bound"
	if !w.Valid() {
		bound = "not bound"
	}
	return fmt.Sprintf("MW (type %d, STag %#08x, %s)", w.kind, w.STag(), bound)
}

// String returns kind and use, such as "RNIC (permissive, 2 QPs, 1 Listener)".
func (r *RNIC) String() string {
	if r.made() != nil {
		return "no RNIC"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := fmt.Sprintf("RNIC (%v, %s, %s", r.kind, wording.Count(len(r.qps), "QP"), wording.Count(len(r.lns), "Listener"))
	if r.closed {
		s += ", closed"
	}
	return s + ")"
}

// String returns address and use, such as "Listener (10.0.0.1:7174, 2 QPs)".
func (l *Listener) String() string {
	if l.made() != nil {
		return "no Listener"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := fmt.Sprintf("Listener (%s, %s", addrText(l.Addr()), wording.Count(len(l.qps), "QP"))
	if l.ctx.Err() != nil {
		s += ", closed"
	}
	return s + ")"
}

// String returns what the peer asks for, such as "Request (10.0.0.2:4711, RFC 6581, IRD 32, ORD 32)". It shows
// nothing of the private data.
func (r *Request) String() string {
	if r.made() != nil {
		return "no Request"
	}
	m := r.MPA()
	return fmt.Sprintf("Request (%s, %v, IRD %v, ORD %v)", addrText(r.RemoteAddr()), m.Dialect, m.IRD, m.ORD)
}

// String names the rights, joined by "|", or is "none".
func (a Access) String() string { return memory.Access(a).String() }

// MarshalBinary returns the RemoteLen bytes by which a program may tell its peer of
// memory: an advertisement is the business of the applications (RFC 5040, section 1.2),
// and this is one form of it. Numbers are in network order, and Reserved is zero.
//
//	 0                               8               12              16
//	+-------------------------------+---------------+---------------+
//	|              TO               |     STag      |   Reserved    |
//	+-------------------------------+---------------+---------------+
func (r Remote) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, RemoteLen))
}

// AppendBinary appends what MarshalBinary returns. Its error is nil.
func (r Remote) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, r.TO)
	b = binary.BigEndian.AppendUint32(b, r.STag)
	return binary.BigEndian.AppendUint32(b, 0), nil
}

// UnmarshalBinary reads what MarshalBinary has written. Anything but RemoteLen bytes, or a
// Reserved field that is not zero, is ErrInvalid.
func (r *Remote) UnmarshalBinary(b []byte) error {
	if len(b) != RemoteLen {
		err := fmt.Errorf("%w: %d bytes: there must be %d", ErrInvalid, len(b), RemoteLen)
		return &OpError{Op: "read a Remote", Err: err}
	}
	if reserved := binary.BigEndian.Uint32(b[12:]); reserved != 0 {
		err := fmt.Errorf("%w: the reserved field, at offset 12, is %#08x instead of zero", ErrInvalid, reserved)
		return &OpError{Op: "read a Remote", Err: err}
	}
	r.TO, r.STag = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	return nil
}

// String gives STag, tagged offset and length, such as "STag 0x5f31c200 TO 0x0, 4096 bytes".
func (r Region) String() string { return r.Remote.String() + ", " + wording.Count(r.Len, "byte") }

// RegionLen is the length of a Region's wire form, in bytes.
const RegionLen = RemoteLen + 8

// MarshalBinary returns RegionLen bytes: the wire form of the Remote, and the length in network order. A Region that is
// zero, or has no such length, is ErrInvalid.
//
//	 0                               8               12              16                             24
//	+-------------------------------+---------------+---------------+-------------------------------+
//	|              TO               |     STag      |   Reserved    |            Length             |
//	+-------------------------------+---------------+---------------+-------------------------------+
func (r Region) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, RegionLen))
}

// AppendBinary appends what MarshalBinary returns.
func (r Region) AppendBinary(b []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return b, &OpError{Op: "write a Region", Err: err}
	}
	b, _ = r.Remote.AppendBinary(b)
	return binary.BigEndian.AppendUint64(b, uint64(r.Len)), nil
}

// UnmarshalBinary reads what MarshalBinary has written. Anything but RegionLen bytes, a Reserved field that is not
// zero, and a Region that MarshalBinary refuses, or whose length an int does not hold, is ErrInvalid.
func (r *Region) UnmarshalBinary(b []byte) error {
	if len(b) != RegionLen {
		err := fmt.Errorf("%w: %s: there must be %d", ErrInvalid, wording.Count(len(b), "byte"), RegionLen)
		return &OpError{Op: "read a Region", Err: err}
	}
	var read Region
	if err := read.Remote.UnmarshalBinary(b[:RemoteLen]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint64(b[RemoteLen:])
	read.Len = int(min(n, math.MaxInt))
	err := read.check()
	if err == nil && n > math.MaxInt {
		err = fmt.Errorf("%w: a Region of %d bytes", ErrInvalid, n)
	}
	if err != nil {
		return &OpError{Op: "read a Region", Err: err}
	}
	*r = read
	return nil
}

// Num returns the QP's number, unique in its RNIC.
func (qp *QP) Num() uint32 {
	if qp == nil {
		return 0
	}
	return qp.num
}

// PD returns the QP's Protection Domain.
func (qp *QP) PD() *PD {
	if qp == nil {
		return nil
	}
	return qp.pd
}

// SendCQ returns the CQ of the Send Queue's completions.
func (qp *QP) SendCQ() *CQ {
	if qp == nil {
		return nil
	}
	return qp.sendCQ
}

// RecvCQ returns the CQ of the receives' completions, and nil if QPConfig.Receives is set: Receive has that one.
func (qp *QP) RecvCQ() *CQ {
	if qp == nil || qp.inbox != nil {
		return nil
	}
	return qp.recvCQ
}

// LocalAddr returns our address, or nil before there is a connection.
func (qp *QP) LocalAddr() net.Addr {
	if qp.made() != nil {
		return nil
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.ends == nil {
		return nil
	}
	return qp.ends.local
}

// RemoteAddr returns the peer's address, or nil before there is a connection.
func (qp *QP) RemoteAddr() net.Addr {
	if qp.made() != nil {
		return nil
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.ends == nil {
		return nil
	}
	return qp.ends.remote
}

// UserData returns QPConfig.UserData. For a completion, it is WC.QP.UserData.
func (qp *QP) UserData() any {
	if qp.made() != nil {
		return nil
	}
	return qp.cfg.UserData
}

// String returns what the startup came to, such as "Initiator, RFC 6581, revision 2, markers off received and off
// sent, CRC on, IRD 32, ORD 32, EMSS 1448, MULPDU 1440". It shows nothing of the private data.
func (n Negotiated) String() string {
	s := fmt.Sprintf("%v, %v", n.Role, n.Dialect)
	if !n.noMPA {
		s += fmt.Sprintf(", revision %d, markers %v received and %v sent, CRC %v",
			n.Revision, markersOf(n.MarkersReceive), markersOf(n.MarkersSend), markersOf(n.CRC))
	}
	s += fmt.Sprintf(", IRD %v, ORD %v", n.IRD, n.ORD)
	if n.PeerToPeer {
		s += fmt.Sprintf(", peer-to-peer with RTR %v", n.RTR)
	}
	if n.EMSS > 0 { // else there is no TCP
		s += fmt.Sprintf(", EMSS %d", n.EMSS)
	}
	s += fmt.Sprintf(", MULPDU %d", n.MULPDU)
	if n.FellBack {
		s += fmt.Sprintf(", after a fallback: %v", n.FallbackReason)
	}
	return s
}

// String returns the attributes, such as "RTS, IRD 32, ORD 32, version 1, markers off received and off sent,
// permissive, MULPDU 1440, outstanding: 1 send request, 5 receives".
func (a QPAttr) String() string {
	s := fmt.Sprintf("%v, IRD %d, ORD %d, version %v, markers %v received and %v sent, %v, MULPDU %d, outstanding: %s, %s",
		a.State, a.IRD, a.ORD, a.Stream.Version, a.Stream.MarkersReceive, a.Stream.MarkersSend, a.Kind, a.MULPDU,
		wording.Count(a.Sends, "send request"), wording.Count(a.Receives, "receive"))
	if a.Terminate != nil {
		s += ", " + a.Terminate.text()
	}
	return s
}
