package iwarp_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/usertcp"
)

// A gapLink loses one segment of TCP, however often it is sent, until it is told not to.
type gapLink struct {
	usertcp.Link
	mu    sync.Mutex
	armed bool // the next segment with octets is that one
	open  bool
	lost  uint32 // its first octet
}

// Send is usertcp.Link's.
func (l *gapLink) Send(packet []byte) {
	if ip := header.IPv4(packet); !carriesOctets(ip) || !l.loses(tcpOf(ip)) {
		l.Link.Send(packet)
	}
}

func (l *gapLink) loses(tcp header.TCP) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed {
		l.armed, l.open, l.lost = false, true, tcp.SequenceNumber()
	}
	return l.open && l.lost-tcp.SequenceNumber() < uint32(len(tcp.Payload()))
}

func (l *gapLink) set(armed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.open = armed, false
}

// TestUserTCPHeldOnce: octets that are placed ahead of order are in the consumer's memory, and with TCP, which keeps them until all before them has come; MPA
// keeps none of them. When the gap is closed TCP lets go of its copy.
//
// Proves R05.
func TestUserTCPHeldOnce(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	const size = 1 << 20
	var gap *gapLink
	over := &transport{user: true, stack: usertcp.Config{ReceiveBuffer: usertcp.MaxReceiveBuffer, MaxRTO: time.Second}}
	over.wrap = func(i int, l usertcp.Link) usertcp.Link {
		if i > 0 {
			return l
		}
		gap = &gapLink{Link: l}
		return gap
	}
	ini, res := setup{over: over}.connect(t)
	src, dst := ini.filled(size, 3, 0), res.mr(size, iwarp.RemoteWrite)
	write := func() {
		res.postRecv(1)
		ini.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, size)}, Remote: dst.Remote(0)})
		ini.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
	}
	for range 4 { // TCP comes to send much at once
		write()
		res.wantReceived(1, iwarp.StatusSuccess)
		ini.wantSent(iwarp.OpWrite, 1, iwarp.StatusSuccess)
		ini.wantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
	}
	clear(dst.Bytes())
	heap, _ := held()
	before := res.Stats().Ahead.PlacedOctets

	gap.set(true)
	write()
	ahead := func() uint64 { return res.Stats().Ahead.PlacedOctets - before }
	until(t, func() bool { return ahead() >= size/4 }, "octets ahead of order")
	n := res.Stats().Ahead
	if n.MostOctets > 1500 {
		t.Errorf("%d octets were placed ahead of order, and MPA has held %d", ahead(), n.MostOctets)
	}
	if at := bytes.IndexByte(dst.Bytes(), src.Bytes()[size/8]); at < 1000 {
		t.Errorf("octet %d is there, which was lost", at)
	}
	during, _ := held()

	gap.set(false)
	res.wantReceived(1, iwarp.StatusSuccess)
	same(t, "Write", dst, src)
	finish(t, ini, res)
	after, _ := held()
	if during-heap < uint64(size/4) || int64(after-heap) > size/8 {
		t.Errorf("the heap has %d octets more while the gap is open, and %d after it", during-heap, int64(after-heap))
	}
}
