//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/programs/datagram"
)

// A udPort is a port of UDP with the QPs that have their numbers from it.
type udPort struct {
	numbers
	socket *datagram.Socket
	qps    [numbersPerPort]atomic.Pointer[UD]
}

// takeDatagrams gives a QP its number and its port, which takes datagrams for it from then on.
func (p *ports) takeDatagrams(d *Device, u *UD) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.datagrams, func(port *udPort) bool { return port.inUse < inUseAtMost })
	if i < 0 {
		port, err := p.openDatagrams(d)
		if err != nil {
			return err
		}
		i = len(p.datagrams)
		p.datagrams = append(p.datagrams, port)
	}
	u.port = p.datagrams[i]
	u.number = u.port.allocate()
	u.port.qps[uint8(u.number)].Store(u)
	return nil
}

// giveDatagrams returns the number of a QP.
func (p *ports) giveDatagrams(u *UD) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.port.qps[uint8(u.number)].Store(nil)
	u.port.give(u.number)
}

func (p *ports) openDatagrams(d *Device) (*udPort, error) {
	for {
		socket, err := datagram.Listen(d.recording.datagrams())
		if err != nil {
			return nil, err
		}
		number := uint32(socket.Port())
		if slices.ContainsFunc(p.streams, func(n *numbers) bool { return n.port == number }) {
			_ = socket.Close()
			continue
		}
		port := &udPort{numbers: numbers{port: number}, socket: socket}
		go socket.Serve(port.deliver)
		return port, nil
	}
}

// deliver brings a datagram to the QP that it is for, if that is there.
func (p *udPort) deliver(h *datagram.Header, from netip.Addr, payload []byte) {
	if h.Destination>>8 != p.port {
		return
	}
	if u := p.qps[uint8(h.Destination)].Load(); u != nil {
		u.receive(h, from, payload)
	}
}
