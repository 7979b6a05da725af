package ulp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A pinger is rping of rdma-core. The client is the end that connects.
type pinger struct {
	memory  memory
	offered int // the client's message that the server has not answered yet, 0 for none
}

func beginRping([2]any, [2][]byte) (protocol, bool) { return &pinger{}, false }

func (p *pinger) access(end int, a *Access) (line, int) {
	if end == 0 {
		return line{}, silent
	}
	return p.memory.access(end, a)
}

func (p *pinger) size() int { return p.memory.size() }

func (p *pinger) send(end int, m *Message) (line, int) {
	a, err := message.ParseAdvert(m.Data)
	if err != nil || !m.whole() || end == 1 && p.offered == 0 {
		return line{}, against
	}
	if end == 1 {
		asked := p.offered
		p.offered = 0
		return line{text: "go ahead", answers: asked}, fits
	}
	unanswered := p.offered > 0 // or the answer is not in the capture
	p.offered = m.n
	if unanswered || a.Length == 0 || a.STag == 0 {
		return line{}, against
	}
	l := line{text: fmt.Sprintf("buffer of %s at STag %#08x", wording.Bytes(a.Length), a.STag)}
	p.memory.add(0, a.STag, piece{to: a.TO, length: uint64(a.Length), what: "the client's buffer"})
	return l, fits
}
