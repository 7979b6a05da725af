package iwarp

import (
	"fmt"
	"net"
	"net/netip"
)

// An SRQAttr is what SRQ.Query returns.
type SRQAttr struct {
	// Depth is how many receives the queue holds, and MaxSGE how many elements one may have.
	Depth, MaxSGE int
	// Limit is the number of receives under which an EventSRQLimit comes; 0: none is asked for.
	Limit int
	// PerQP is how many receives one QP may hold at a time; 0: there is no bound.
	PerQP int
	// Receives is how many are in the queue, and Taken how many the QPs have taken whose completions were not polled.
	Receives, Taken int
	// QPs is how many take their receives from the queue.
	QPs int
}

// Query returns the queue's present attributes.
func (s *SRQ) Query() SRQAttr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SRQAttr{
		Depth: s.work.Limit(), MaxSGE: MaxSGE, Limit: s.limit, PerQP: s.perQP,
		Receives: s.work.Len(), Taken: int(s.out.Load()), QPs: s.users,
	}
}

// A PortAttr describes a network interface of the host, by which connections of an RNIC leave and come:
// the RNIC has no port of its own, and the system chooses one by the peer's address.
type PortAttr struct {
	// Index and Name are the system's.
	Index int
	Name  string
	// Up tells whether the interface can be used, and Loopback whether it leads to the host itself.
	Up, Loopback bool
	// MTU is that of the interface, in octets.
	MTU int
	// HardwareAddr is its address on the link, which may be empty.
	HardwareAddr net.HardwareAddr
	// Addrs are its IP addresses, with the length of their prefixes.
	Addrs []netip.Prefix
}

// QueryPorts returns the host's network interfaces, as they are now, in the order of their indices. The
// error is the system's.
func (r *RNIC) QueryPorts() ([]PortAttr, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, &OpError{Op: "query ports", Err: err}
	}
	ports := make([]PortAttr, 0, len(all))
	for _, i := range all {
		p, err := portOf(&i)
		if err != nil {
			return nil, &OpError{Op: "query ports", Err: err}
		}
		ports = append(ports, p)
	}
	return ports, nil
}

func portOf(i *net.Interface) (PortAttr, error) {
	p := PortAttr{
		Index: i.Index, Name: i.Name, MTU: i.MTU, HardwareAddr: i.HardwareAddr,
		Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0,
	}
	addrs, err := i.Addrs()
	if err != nil {
		return p, fmt.Errorf("%s: %w", i.Name, err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil { // others are no IP addresses
			p.Addrs = append(p.Addrs, prefix)
		}
	}
	return p, nil
}
