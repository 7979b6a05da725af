package decode

import (
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/ulp"
	"github.com/goiwarp/iwarp/rdmap"
)

// maxHeard is how many bytes of a Send are looked at.
const maxHeard = 8 << 10

// A place is where a message is in the capture.
type place struct {
	dir    capture.Dir
	offset uint64
	packet capture.Stamp
}

// heard is what the ends of a connection say above RDMAP.
type heard struct {
	conn  *ulp.Conn[place]
	sends [2]gathered
}

// gathered is a Send of several segments, as far as it has come.
type gathered struct {
	open      bool
	msn, next uint32
}

// hear looks at what a well-formed segment says of the ULP.
func (h *half) hear(f *FPDU) {
	x, s := &h.c.heard, &f.Segment
	if x.conn != nil && x.conn.Off() {
		h.c.pub.ULP.Forgotten = x.conn.Forgotten
		return
	}
	here := place{h.dir, f.Offset, f.Last}
	switch {
	case f.ReadRequest != nil && x.conn != nil:
		r := f.ReadRequest
		h.c.tell(x.conn.Access(here, h.ulpEnd(), ulp.Access{Read: true, STag: r.SrcSTag, TO: r.SrcTO, Length: r.Size}))
	case f.Op == rdmap.OpWrite && x.conn != nil && !h.messages.tagged.open && len(s.Payload) > 0:
		h.c.tell(x.conn.Access(here, h.ulpEnd(), ulp.Access{STag: s.STag, TO: s.TO, Length: uint32(len(s.Payload)), Data: s.Payload}))
	case f.Op >= rdmap.OpSend && f.Op <= rdmap.OpSendSEInvalidate:
		c := h.c.ulp()
		m, whole := x.sends[h.dir].add(s, &c.Heads[h.dir])
		switch {
		case !whole:
			c.Count()
		case m.Length > 0:
			h.c.tell(c.Send(here, h.ulpEnd(), m))
		}
	}
}

// add takes a segment of a Send, and returns the message when it is whole: head is where it is put together. One whose
// segments come in another order is left out.
func (g *gathered) add(s *ddp.Segment, head *[]byte) (m ulp.Message, whole bool) {
	if s.MO == 0 && s.Last {
		g.open = false
		return ulp.Message{Data: s.Payload[:min(len(s.Payload), maxHeard)], Length: len(s.Payload)}, true
	}
	if s.MO == 0 {
		*g = gathered{open: true, msn: s.MSN}
		*head = (*head)[:0]
	}
	if !g.open || s.MSN != g.msn || s.MO != g.next {
		g.open = false
		return m, false
	}
	g.next += uint32(len(s.Payload))
	*head = append(*head, s.Payload[:min(len(s.Payload), maxHeard-len(*head))]...)
	if !s.Last {
		return m, false
	}
	g.open = false
	return ulp.Message{Data: *head, Length: int(g.next)}, true
}

// ulp returns what is known of the ULP, from the first Send on.
func (c *conn) ulp() *ulp.Conn[place] {
	if c.heard.conn == nil {
		first := c.client()
		c.heard.conn = c.d.ulps.New(c.tcp.Halves[first.Peer()].Addr.Port(),
			[2][]byte{c.pub.PrivateData[first], c.pub.PrivateData[first.Peer()]})
	}
	return c.heard.conn
}

// leave forgets it at the end of the connection.
func (x *heard) leave() {
	if x.conn != nil {
		x.conn.Leave()
	}
}

// client is the direction of the end that connects. Without a startup the ports tell.
func (c *conn) client() capture.Dir {
	if c.pub.Midstream && ulp.ServesOn(c.tcp.Halves[capture.Forward].Addr.Port()) {
		return capture.Backward
	}
	return c.pub.Initiator
}

// ulpEnd numbers the ends for package ulp.
func (h *half) ulpEnd() int {
	if h.dir == h.c.client() {
		return 0
	}
	return 1
}

// tell tells of what the ULP has said.
func (c *conn) tell(all []ulp.Said[place]) {
	for i := range all {
		s := &all[i]
		u := &c.pub.ULP
		u.Protocol = s.Protocol
		u.Messages++
		at := s.Mark
		e := ULP{Dir: at.dir, Offset: at.offset, Packet: at.packet, Protocol: s.Protocol, Text: s.Text}
		if s.Answers {
			e.Latency = max(0, at.packet.Time.Sub(s.Asked.packet.Time)) // a capture's clock may go back
			u.Latency.Add(uint64(e.Latency))
		}
		c.d.to.ULP(c.pub, &e)
		if s.Failure != "" {
			u.Failures++
			c.report(findULP, at.dir, at.offset, at.packet, s.Protocol+" reports "+s.Failure, s.Advice)
		}
	}
}
