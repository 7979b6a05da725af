package iwarp_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/machine"
	"github.com/goiwarp/iwarp/usertcp"
)

// A gapLink loses one segment of TCP, however often it is sent, until it is told not to.
type gapLink struct {
	usertcp.Link
	mu    sync.Mutex
	begun bool
	next  uint32 // after the octets that were sent once
	armed bool   // the next segment with octets that were not is that one
	open  bool
	lost  uint32 // its first octet
	times int    // it was lost so often
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
	fresh := !l.begun || int32(tcp.SequenceNumber()-l.next) >= 0
	if fresh {
		l.begun, l.next = true, tcp.SequenceNumber()+uint32(len(tcp.Payload()))
	}
	if fresh && l.armed {
		l.armed, l.open, l.lost = false, true, tcp.SequenceNumber()
	}
	loses := l.open && l.lost-tcp.SequenceNumber() < uint32(len(tcp.Payload()))
	if loses {
		l.times++
	}
	return loses
}

// spent reports whether TCP has sent the segment so often that it has been through its timeouts, and sends nothing else.
func (l *gapLink) spent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times > 5
}

func (l *gapLink) set(armed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.open, l.times = armed, false, 0
}

// TestUserTCPHeldOnce: octets that are placed ahead of order are in the consumer's memory, and with TCP, which keeps them until all before them has come; MPA
// keeps none of them. When the gap is closed TCP lets go of its copy.
//
// Proves R05.
func TestUserTCPHeldOnce(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	for range 20 {
		if heldOnce(t) {
			return
		}
	}
	t.Error("TCP never had enough on its way")
}

// heldOnce is one connection of the test. It reports whether enough has come ahead of order: on a busy machine TCP takes a segment that is
// late for lost, sends one at a time from then on, and does not come to so much while the gap is open.
func heldOnce(t *testing.T) bool {
	const size, enough = 1 << 20, 1 << 16
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
	written := func() {
		res.wantReceived(1, iwarp.StatusSuccess)
		ini.wantSent(iwarp.OpWrite, 1, iwarp.StatusSuccess)
		ini.wantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
	}
	for range 4 { // TCP comes to send much at once
		write()
		written()
	}
	clear(dst.Bytes())
	heap, _ := machine.Held()
	before := res.Stats().Ahead.PlacedOctets

	gap.set(true)
	write()
	ahead := func() uint64 { return res.Stats().Ahead.PlacedOctets - before }
	until(t, func() bool { return ahead() >= enough || gap.spent() }, "octets ahead of order")
	if ahead() < enough {
		gap.set(false)
		written()
		finish(t, ini, res)
		return false
	}
	n := res.Stats().Ahead
	if n.MostOctets > 1500 {
		t.Errorf("%d octets were placed ahead of order, and MPA has held %d", ahead(), n.MostOctets)
	}
	if at := bytes.IndexByte(dst.Bytes(), src.Bytes()[size/8]); at < 1000 {
		t.Errorf("octet %d is there, which was lost", at)
	}
	during, _ := machine.Held()

	gap.set(false)
	res.wantReceived(1, iwarp.StatusSuccess)
	same(t, "Write", dst, src)
	finish(t, ini, res)
	if int64(during-heap) < enough {
		t.Errorf("the heap has %d octets more while the gap is open", during-heap)
	}
	until(t, func() bool {
		after, _ := machine.Held()
		return int64(after-heap) <= size/8
	}, "the heap to be as before")
	return true
}
