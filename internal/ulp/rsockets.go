package ulp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A sockets is rsockets. Its words are too short to be known by their form: both ends must have said Hello.
type sockets struct {
	hello  [2]rsockets.Hello
	memory memory
}

func beginRsockets(_ [2]any, raw [2][]byte) (protocol, bool) {
	p := &sockets{}
	for end, b := range raw {
		h, err := rsockets.ParseHello(b)
		if err != nil || len(b) < rsockets.HelloLen {
			return nil, false
		}
		p.hello[end] = h
		p.memory.add(end, h.Table.STag, piece{to: h.Table.TO, length: uint64(h.Entries) * rsockets.EntryLen,
			what: "where the other end may write next"})
	}
	return p, true
}

// access knows the table; that of maps is behind it, and all else is the ring.
func (p *sockets) access(end int, a *Access) (line, int) {
	if a.Read {
		return line{}, silent
	}
	if l, verdict := p.memory.access(end, a); verdict > silent {
		return l, verdict
	}
	if h := &p.hello[1-end]; a.STag == h.Ring.STag {
		return line{text: fmt.Sprintf("Write to STag %#08x: the ring", a.STag)}, agrees
	}
	return line{}, silent
}

func (p *sockets) size() int { return p.memory.size() }

func (p *sockets) send(end int, m *Message) (line, int) {
	// An acceptor takes the order of the one that connects.
	w, err := rsockets.ParseWord(m.Data, p.hello[end].Big)
	if err != nil || !m.whole() {
		return line{}, against
	}
	switch w.Op() {
	case rsockets.OpData:
		return line{text: wording.Bytes(w.Value()) + " in the ring"}, fits
	case rsockets.OpCredit:
		return line{text: fmt.Sprintf("credit up to message %d", w.Value()&0xffff)}, fits
	case rsockets.OpMap:
		return line{text: fmt.Sprintf("entry %d of the maps is new", w.Value())}, fits
	case rsockets.OpControl:
		return control(rsockets.Control(w.Value()))
	}
	return line{}, against
}

func control(c rsockets.Control) (line, int) {
	switch c {
	case rsockets.Disconnect:
		return line{text: "disconnect"}, fits
	case rsockets.Shutdown:
		return line{text: "shutdown: it sends no more"}, fits
	case rsockets.KeepAlive:
		return line{text: "keep-alive"}, fits
	}
	return line{}, against
}
