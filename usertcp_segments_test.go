package iwarp_test

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/usertcp"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A middlebox is a link with a device in it that cuts some segments of TCP in two, joins others with those that follow,
// and shifts the cut between two, wherever FPDUs are: as proxies and offloads do.
type middlebox struct {
	usertcp.Link
	mu          sync.Mutex
	rand        *rand.Rand
	kept        header.IPv4 // waits for the next
	due         *time.Timer // for what waits
	cuts, joins atomic.Int32
}

func newMiddlebox(l usertcp.Link, seed uint64) *middlebox {
	m := &middlebox{Link: l, rand: rand.New(rand.NewPCG(seed, 0))}
	m.due = time.AfterFunc(time.Hour, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.release()
	})
	return m
}

// keepTime is how long a segment waits for the next: the last of a message is followed by none.
const keepTime = time.Millisecond

// Send is usertcp.Link's.
func (m *middlebox) Send(packet []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ip := header.IPv4(packet)
	switch {
	case !carriesBytes(ip):
		m.release()
		m.Link.Send(packet)
	case m.kept != nil && follows(m.kept, ip):
		m.joins.Add(1)
		m.pass(join(m.kept, ip))
		m.kept = nil
	case m.kept == nil && m.rand.IntN(3) == 0:
		m.kept = bytes.Clone(ip)
		m.due.Reset(keepTime)
	default:
		m.release()
		m.pass(ip)
	}
}

// release lets go what waits.
func (m *middlebox) release() {
	if m.kept != nil {
		m.Link.Send(m.kept)
		m.kept = nil
	}
}

// pass sends bytes in one segment, or in two where they do not fit into one, and now and then where they do.
func (m *middlebox) pass(ip header.IPv4) {
	data := tcpOf(ip).Payload()
	most := m.MTU() - (len(ip) - len(data))
	from, to := max(1, len(data)-most), min(len(data)-1, most)
	if from > to || len(data) <= most && m.rand.IntN(4) > 0 {
		m.Link.Send(ip)
		return
	}
	m.cuts.Add(1)
	cut := from + m.rand.IntN(to-from+1)
	m.Link.Send(remade(ip, 0, data[:cut]))
	m.Link.Send(remade(ip, uint32(cut), data[cut:]))
}

func tcpOf(ip header.IPv4) header.TCP { return header.TCP(ip.Payload()) }

// carriesBytes reports whether a packet is a segment in the middle of a stream.
func carriesBytes(ip header.IPv4) bool {
	if !ip.IsValid(len(ip)) || ip.Protocol() != uint8(header.TCPProtocolNumber) {
		return false
	}
	tcp := tcpOf(ip)
	return len(tcp.Payload()) > 0 && tcp.Flags()&^(header.TCPFlagAck|header.TCPFlagPsh) == 0
}

// follows reports whether a segment's bytes come right after another's, on the same connection.
func follows(one, next header.IPv4) bool {
	a, b := tcpOf(one), tcpOf(next)
	return one.SourceAddress() == next.SourceAddress() && a.SourcePort() == b.SourcePort() &&
		a.DestinationPort() == b.DestinationPort() &&
		a.SequenceNumber()+uint32(len(a.Payload())) == b.SequenceNumber()
}

// join puts the bytes of the first segment in front of those of the next, which has the later acknowledgement.
func join(one, next header.IPv4) header.IPv4 {
	data := append(bytes.Clone(tcpOf(one).Payload()), tcpOf(next).Payload()...)
	return remade(next, -uint32(len(tcpOf(one).Payload())), data)
}

// remade is a segment with other bytes, so many places further in the stream.
func remade(ip header.IPv4, by uint32, data []byte) header.IPv4 {
	heads := len(ip) - len(tcpOf(ip).Payload())
	made := header.IPv4(append(bytes.Clone(ip[:heads]), data...))
	made.SetTotalLength(uint16(len(made)))
	made.SetChecksum(0)
	made.SetChecksum(^made.CalculateChecksum())
	tcp := tcpOf(made)
	tcp.SetSequenceNumber(tcp.SequenceNumber() + by)
	tcp.SetChecksum(0)
	pseudo := header.PseudoHeaderChecksum(header.TCPProtocolNumber, made.SourceAddress(),
		made.DestinationAddress(), uint16(len(tcp)))
	tcp.SetChecksum(^checksum.Checksum(tcp, pseudo))
	return made
}

// TestUserTCPResegmented has a middlebox in each direction between two TCPs in user space: what it makes of the
// segments is placed ahead of order or later, and is right in any case.
//
// RFC 5044, appendix A.4: "However, MPA receivers MUST NOT depend on FPDU Alignment on TCP segment boundaries." [R04]
//
// Proves R03, R04, R05.
func TestUserTCPResegmented(t *testing.T) {
	t.Parallel()
	qp := rig.DeepQueues()
	qp.CloseTimeout, qp.CloseLimit = testrig.Soon, -1
	var boxes [2]*middlebox
	over := &rig.Transport{User: true, Path: bad(40), Stack: usertcp.Config{MaxRTO: time.Second},
		Wrap: func(i int, l usertcp.Link) usertcp.Link {
			boxes[i] = newMiddlebox(l, uint64(i))
			return boxes[i]
		}}
	s := rig.Setup{Dialer: iwarp.Dialer{QP: qp}, Accept: iwarp.AcceptConfig{QP: qp}, Over: over}
	ini, res := s.Connect(t)
	converse(t, ini, res, 4)
	for i, e := range []*rig.End{ini, res} {
		n, cuts, joins := e.Stats().Ahead, boxes[i].cuts.Load(), boxes[i].joins.Load()
		if n.Placed == 0 || n.MostBytes == 0 || n.Dropped > 0 || cuts == 0 || joins == 0 {
			t.Errorf("%+v; %d cuts, %d joins", n, cuts, joins)
		}
	}
}

// A gapLink loses one segment of TCP, however often it is sent, until it is told not to.
//
// Each segment that passes beside the gap has TCP send the lost one again. gVisor counts these with those of its
// time-outs, and ends the connection after a hundred: they take some milliseconds. After lossLimit of them the link
// loses all data, so that TCP waits for its timer.
type gapLink struct {
	usertcp.Link
	mu    sync.Mutex
	begun bool
	next  uint32 // after the bytes that were sent once
	armed bool   // the next segment with bytes that were not is that one
	open  bool
	lost  uint32    // its first byte
	times int       // it was lost so often
	moved time.Time // something was last sent beside the gap
}

const lossLimit = 20

// Send is usertcp.Link's.
func (l *gapLink) Send(packet []byte) {
	if ip := header.IPv4(packet); !carriesBytes(ip) || !l.loses(tcpOf(ip)) {
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
	if l.open && l.lost-tcp.SequenceNumber() < uint32(len(tcp.Payload())) {
		l.times++
		return true
	}
	if l.times >= lossLimit {
		return l.open
	}
	l.moved = time.Now()
	return false
}

// spent reports whether nothing passes any more: TCP has been through several of its time-outs.
func (l *gapLink) spent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open && l.times > 1 && time.Since(l.moved) > 2*time.Second
}

func (l *gapLink) set(armed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.open, l.times = armed, false, 0
}

// TestUserTCPHeldOnce: bytes that are placed ahead of order are in the consumer's memory, and with TCP, which keeps
// them until all before them has come; MPA keeps none of them. When the gap is closed TCP lets go of its copy.
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
	t.Error("TCP never had enough on its way, or the heap never had it")
}

// heldOnce is one connection of the test. It reports whether enough has come ahead of order: on a busy machine TCP
// takes a segment that is late for lost, sends one at a time from then on, and does not come to so much while the gap
// is open. What earlier tests have left may go from the heap while this one looks.
func heldOnce(t *testing.T) bool {
	const size, enough = 1 << 20, 1 << 16
	var gap *gapLink
	over := &rig.Transport{User: true, Stack: usertcp.Config{ReceiveBuffer: usertcp.MaxReceiveBuffer,
		MaxRTO: time.Second}}
	over.Wrap = func(i int, l usertcp.Link) usertcp.Link {
		if i > 0 {
			return l
		}
		gap = &gapLink{Link: l}
		return gap
	}
	ini, res := rig.Setup{Over: over}.Connect(t)
	src, dst := ini.Filled(size, 3, 0), res.MR(size, iwarp.RemoteWrite)
	write := func() {
		res.MustPostRecv(1)
		ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpWrite,
			SGL: []iwarp.SGE{src.Slice(0, size)}, Remote: dst.Remote(0)})
		ini.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
	}
	written := func() {
		res.WantReceived(1, iwarp.StatusSuccess)
		ini.WantSent(iwarp.OpWrite, 1, iwarp.StatusSuccess)
		ini.WantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
	}
	for range 4 { // TCP comes to send much at once
		write()
		written()
	}
	ini.MustPostRecv(1) // what comes back acknowledges all, so that TCP keeps nothing to send again
	res.MustPost(&iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
	ini.WantReceived(1, iwarp.StatusSuccess)
	res.WantSent(iwarp.OpSend, 3, iwarp.StatusSuccess)
	clear(dst.Bytes())
	heap, _ := procstat.Held()
	before := res.Stats().Ahead.PlacedBytes

	gap.set(true)
	write()
	ahead := func() uint64 { return res.Stats().Ahead.PlacedBytes - before }
	rig.Until(t, func() bool { return ahead() >= enough || gap.spent() }, "bytes ahead of order")
	if ahead() < enough {
		gap.set(false)
		written()
		rig.Finish(t, ini, res)
		return false
	}
	n := res.Stats().Ahead
	if n.MostBytes > 1500 {
		t.Errorf("%d bytes were placed ahead of order, and MPA has held %d", ahead(), n.MostBytes)
	}
	if at := bytes.IndexByte(dst.Bytes(), src.Bytes()[size/8]); at < 1000 {
		t.Errorf("byte %d is there, which was lost", at)
	}
	during, _ := procstat.Held()

	gap.set(false)
	res.WantReceived(1, iwarp.StatusSuccess)
	rig.Same(t, "Write", dst, src)
	rig.Finish(t, ini, res)
	if int64(during-heap) < enough {
		t.Logf("the heap has %d bytes more while the gap is open", int64(during-heap))
		return false // something else has gone meanwhile: what an earlier test left
	}
	rig.Until(t, func() bool {
		after, _ := procstat.Held()
		return int64(after-heap) <= size/8
	}, "the heap to be as before")
	return true
}
