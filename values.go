package iwarp

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// String returns number, state and addresses, such as
// "QP 3 (RTS, 10.0.0.1:4711 with 10.0.0.2:7174)". It shows nothing of memory and work.
func (qp *QP) String() string {
	qp.mu.Lock()
	state, connected, e := qp.state(), qp.link != nil, qp.ends
	qp.mu.Unlock()
	if !connected {
		return fmt.Sprintf("QP %d (%v)", qp.num, state)
	}
	return fmt.Sprintf("QP %d (%v, %v with %v)", qp.num, state, addrText(e.local), addrText(e.remote))
}

// String returns depth and use, such as "CQ (3 of 256 completions, 2 QPs)".
func (cq *CQ) String() string {
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
	pd.rnic.mu.Lock()
	defer pd.rnic.mu.Unlock()
	return fmt.Sprintf("PD %d (%s, %s, %s)", pd.num, wording.Count(pd.users[userQP], "QP"), wording.Count(pd.users[userSRQ], "SRQ"), wording.Count(pd.users[userMR], "MR"))
}

// String returns what was completed, and how, such as
// "Recv (work request 7) on QP 3: success, 4096 octets". A zero WC is "no completion".
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
		return fmt.Sprintf("%s: %v, Immediate Data %#x after a Write of %s", s, w.Status, w.Immediate, wording.Octets(w.Written))
	case w.Status == StatusSuccess:
		return fmt.Sprintf("%s: %v, %s", s, w.Status, wording.Octets(w.Length))
	case w.cause != nil:
		return fmt.Sprintf("%s: %v: %s", s, w.Status, text(w.cause))
	}
	return fmt.Sprintf("%s: %v", s, w.Status)
}

// String returns depth and use, such as "SRQ (12 of 512 receives, 2 QPs)".
func (s *SRQ) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("SRQ (%d of %d receives, %s)", s.work.Len(), s.work.Limit(), wording.Count(s.users, "QP"))
}

// String returns what a log may have: STag, length and rights, such as
// "MR (STag 0x5f31c200, 4096 octets, RemoteRead|RemoteWrite)", and never the memory.
func (m MR) String() string {
	valid := ""
	if !m.Valid() {
		valid = ", invalid"
	}
	return fmt.Sprintf("MR (STag %#08x, %s, %v%s)", m.STag(), wording.Octets(m.Len()), m.Access(), valid)
}

// String returns type and STag, and whether the window is bound, such as "MW (type 2, STag 0x5f31c200, not bound)".
func (w *MW) String() string {
	bound := "bound"
	if !w.Valid() {
		bound = "not bound"
	}
	return fmt.Sprintf("MW (%v, STag %#08x, %s)", w.kind, w.STag(), bound)
}

// String returns kind and use, such as "RNIC (permissive, 2 QPs, 1 Listener)".
func (r *RNIC) String() string {
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
	l.mu.Lock()
	defer l.mu.Unlock()
	s := fmt.Sprintf("Listener (%s, %s", addrText(l.Addr()), wording.Count(len(l.qps), "QP"))
	if l.ctx.Err() != nil {
		s += ", closed"
	}
	return s + ")"
}

// String returns what the peer asks for, such as "Request (10.0.0.2:4711, RFC 6581, IRD 32, ORD 32)". It shows nothing of the
// private data.
func (r *Request) String() string {
	return fmt.Sprintf("Request (%s, %v, IRD %v, ORD %v)", addrText(r.RemoteAddr()), r.Dialect(), r.IRD(), r.ORD())
}

var accessNames = []struct {
	right Access
	name  string
}{
	{LocalWrite, "LocalWrite"}, {RemoteWrite, "RemoteWrite"}, {RemoteRead, "RemoteRead"}, {RemoteInvalidate, "RemoteInvalidate"}, {RemoteAtomic, "RemoteAtomic"},
}

// String names the rights, joined by "|", or is "none".
func (a Access) String() string {
	var names []string
	for _, n := range accessNames {
		if a&n.right != 0 {
			names, a = append(names, n.name), a&^n.right
		}
	}
	if a != 0 {
		names = append(names, fmt.Sprintf("%#x", uint8(a)))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}

// RemoteLen is the length of a Remote's wire form, in octets.
const RemoteLen = 16

// MarshalBinary returns the RemoteLen octets by which a program may tell its peer of
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

// UnmarshalBinary reads what MarshalBinary has written. Anything but RemoteLen octets, or a
// Reserved field that is not zero, is ErrInvalid.
func (r *Remote) UnmarshalBinary(b []byte) error {
	if len(b) != RemoteLen {
		return &OpError{Op: "read a Remote", Err: fmt.Errorf("%w: %d octets: there must be %d", ErrInvalid, len(b), RemoteLen)}
	}
	if reserved := binary.BigEndian.Uint32(b[12:]); reserved != 0 {
		return &OpError{Op: "read a Remote", Err: fmt.Errorf("%w: the reserved field, at offset 12, is %#08x instead of zero", ErrInvalid, reserved)}
	}
	r.TO, r.STag = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	return nil
}

// Context returns the value that the QP was created with, see QPConfig.
func (qp *QP) Context() any { return qp.cfg.Context }

// Context returns the Context of the QP that the completion belongs to.
func (w *WC) Context() any {
	if w.QP == nil {
		return nil
	}
	return w.QP.Context()
}
