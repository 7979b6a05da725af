//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// A QP number in the guise of RoCE is an address: the port of TCP on which its process listens for it, and in the lower
// 8 bits which of its QPs it is. Programs exchange QP numbers and GIDs, which are addresses, by ways of their own; so
// whoever knows both knows whom to connect to, and whoever can know a number finds a listener there.
// docs/dev/programs.md has the convention.

// numbersPerPort is how many QPs share a port. Not all are in use at once, so that a number rests before it is used
// again.
const (
	numbersPerPort = 256
	inUseAtMost    = numbersPerPort / 2
)

// ports are those of a Device: of TCP, and of UDP for datagrams. None of TCP has the number of one of UDP, as the
// numbers of their QPs are not to be the same.
type ports struct {
	mu        sync.Mutex
	streams   []*numbers
	datagrams []*udPort
}

// numbers are those of the QPs of a port.
type numbers struct {
	port  uint32
	last  uint8 // index that was given last
	used  [numbersPerPort]bool
	inUse int
}

// portOfNumber returns the port of TCP that is in a QP number.
func portOfNumber(number uint32) uint16 { return uint16(number >> 8) }

// allocate returns a number that is free, and listens for it.
func (p *ports) allocate(d *Device) (uint32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.streams {
		if port.inUse < inUseAtMost {
			return port.allocate(), nil
		}
	}
	port, err := p.open(d)
	if err != nil {
		return 0, err
	}
	p.streams = append(p.streams, port)
	return port.allocate(), nil
}

func (n *numbers) allocate() uint32 {
	for n.last++; n.used[n.last]; n.last++ {
	}
	n.used[n.last] = true
	n.inUse++
	return n.port<<8 | uint32(n.last)
}

func (n *numbers) give(number uint32) {
	n.used[uint8(number)] = false
	n.inUse--
}

// give returns a number.
func (p *ports) give(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.streams {
		if port.port == number>>8 {
			port.give(number)
		}
	}
}

// open listens on a port of all addresses that the kernel chooses.
func (p *ports) open(d *Device) (*numbers, error) {
	for {
		ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":0")
		if err != nil {
			return nil, err
		}
		port := uint32(addrPort(ln.Addr()).Port())
		if slices.ContainsFunc(p.datagrams, func(u *udPort) bool { return u.port == port }) {
			_ = ln.Close()
			continue
		}
		go d.answer(d.listener(ln))
		return &numbers{port: port}, nil
	}
}

// answer brings the requests of peers to the QPs that they are for.
func (d *Device) answer(l *iwarp.Listener) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		c, err := ulpdata.ParseQPCall(r.PrivateData())
		var q *QP
		if h, known := d.numbers.Load(c.To); err == nil && known {
			q = d.qps.get(h.(Handle))
		}
		if q == nil {
			go d.refuseCall(r)
			continue
		}
		q.called(r, &c)
	}
}
