//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
)

// A QP number in the guise of RoCE is an address: the port of TCP on which its process listens for it, and in the lower 8 bits
// which of its QPs it is. Programs exchange QP numbers and GIDs, which are addresses, by ways of their own; so whoever knows both
// knows whom to connect to, and whoever can know a number finds a listener there. docs/programs.md has the convention.

// numbersPerPort is how many QPs share a port. Not all are in use at once, so that a number rests before it is used again.
const (
	numbersPerPort = 256
	inUseAtMost    = numbersPerPort / 2
)

// ports are those of a Device.
type ports struct {
	mu  sync.Mutex
	all []*qpPort
}

// A qpPort is a port with the numbers of its QPs.
type qpPort struct {
	listener *iwarp.Listener
	number   uint32 // of TCP
	last     uint8  // index that was given last
	used     [numbersPerPort]bool
	inUse    int
}

// numberMask has the bits of a QP number.
const numberMask = 1<<24 - 1

// portOfNumber returns the port of TCP that is in a QP number.
func portOfNumber(number uint32) uint16 { return uint16(number >> 8) }

// take returns a number that is free, and listens for it.
func (p *ports) take(d *Device) (uint32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.all {
		if port.inUse < inUseAtMost {
			return port.take(), nil
		}
	}
	port, err := d.openPort()
	if err != nil {
		return 0, err
	}
	p.all = append(p.all, port)
	return port.take(), nil
}

func (p *qpPort) take() uint32 {
	for p.last++; p.used[p.last]; p.last++ {
	}
	p.used[p.last] = true
	p.inUse++
	return p.number<<8 | uint32(p.last)
}

// give returns a number.
func (p *ports) give(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.all {
		if port.number == number>>8 {
			port.used[uint8(number)] = false
			port.inUse--
		}
	}
}

// openPort listens on a port of all addresses that the kernel chooses.
func (d *Device) openPort() (*qpPort, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":0")
	if err != nil {
		return nil, err
	}
	l := d.listener(ln)
	go d.answer(l)
	return &qpPort{listener: l, number: uint32(addrPort(ln.Addr()).Port())}, nil
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
