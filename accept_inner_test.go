package iwarp

import (
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A seat is a connection with nothing but an address.
type seat struct {
	net.Conn
	from string
}

func (s *seat) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(s.from), 1))
}

func (s *seat) Close() error { return nil }

// TestAcceptPassesOver: Accept does not return a Request whose connection was closed to make room, though it was
// offered already, and gives its slot back.
func TestAcceptPassesOver(t *testing.T) {
	l := newListener(testrig.NewListener("here"), ListenConfig{MaxPerSource: 2})
	seats := []*seat{{from: "192.0.2.1"}, {from: "192.0.2.2"}, {from: "192.0.2.2"}}
	requests := make([]*Request, len(seats))
	l.ready = make(chan *Request, len(requests))
	for i, s := range seats {
		requests[i] = &Request{slot: l.enter(s)}
		requests[i].slot.Arrived(func() {})
		requests[i].slot.AwaitAccept()
		l.ready <- requests[i]
	}
	if !l.halfOpen.EvictOne() {
		t.Fatal("none was closed")
	}
	for _, want := range []*Request{requests[0], requests[2]} {
		if got, err := l.Accept(testrig.Within(t)); got != want || err != nil {
			t.Errorf("Accept: %p (%v), want %p", got, err, want)
		}
	}
	if l.enter(seats[1]) == nil || l.enter(seats[1]) != nil {
		t.Error("its address may have one connection more, and has none or two")
	}
}

// TestGivesWayOnce: a half-open connection that has to give way and ends by itself at that moment takes no later
// connection of its QP along.
func TestGivesWayOnce(t *testing.T) {
	l := newListener(testrig.NewListener("here"), ListenConfig{})
	pd, err := l.rnic.AllocPD()
	must(t, err)
	qp, err := pd.CreateQP(QPConfig{})
	must(t, err)
	t.Cleanup(func() { _ = qp.Abort() })
	near := connectAlone(t, qp)
	r := &Request{ln: l, slot: l.enter(&seat{from: "192.0.2.1"}), conn: near, counts: l.startupCounters()}
	must(t, r.conclude(qp, nil))
	evicted := make(chan bool)
	l.counts.mu.Lock() // which the eviction waits for
	go func() { evicted <- l.halfOpen.EvictOne() }()
	for n := 1; n > 0; n, _ = l.halfOpen.Count() {
		runtime.Gosched()
	}
	must(t, qp.Modify(StateError))
	<-qp.Done()
	must(t, qp.Modify(StateIdle))
	connectAlone(t, qp)
	l.counts.mu.Unlock()
	if !<-evicted || qp.State() != StateRTS {
		t.Errorf("the next connection is in state %v: %v", qp.State(), qp.Err())
	}
}

// connectAlone puts a QP into RTS on a connection whose other end does nothing.
func connectAlone(t *testing.T, qp *QP) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = far.Close() })
	n := mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true}
	must(t, qp.ModifyRTS(near, n, nil))
	return near
}
