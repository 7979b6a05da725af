package iwarp_test

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/usertcp"
)

// A middlebox is a link with a device in it that cuts some segments of TCP in two, joins others with those that follow, and
// shifts the cut between two, wherever FPDUs are: as proxies and offloads do.
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
	case !carriesOctets(ip):
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

// pass sends octets in one segment, or in two where they do not fit into one, and now and then where they do.
func (m *middlebox) pass(ip header.IPv4) {
	octets := tcpOf(ip).Payload()
	most := m.MTU() - (len(ip) - len(octets))
	from, to := max(1, len(octets)-most), min(len(octets)-1, most)
	if from > to || len(octets) <= most && m.rand.IntN(4) > 0 {
		m.Link.Send(ip)
		return
	}
	m.cuts.Add(1)
	cut := from + m.rand.IntN(to-from+1)
	m.Link.Send(remade(ip, 0, octets[:cut]))
	m.Link.Send(remade(ip, uint32(cut), octets[cut:]))
}

func tcpOf(ip header.IPv4) header.TCP { return header.TCP(ip.Payload()) }

// carriesOctets reports whether a packet is a segment in the middle of a stream.
func carriesOctets(ip header.IPv4) bool {
	if !ip.IsValid(len(ip)) || ip.Protocol() != uint8(header.TCPProtocolNumber) {
		return false
	}
	tcp := tcpOf(ip)
	return len(tcp.Payload()) > 0 && tcp.Flags()&^(header.TCPFlagAck|header.TCPFlagPsh) == 0
}

// follows reports whether a segment's octets come right after another's, on the same connection.
func follows(one, next header.IPv4) bool {
	a, b := tcpOf(one), tcpOf(next)
	return one.SourceAddress() == next.SourceAddress() && a.SourcePort() == b.SourcePort() && a.DestinationPort() == b.DestinationPort() &&
		a.SequenceNumber()+uint32(len(a.Payload())) == b.SequenceNumber()
}

// join puts the octets of the first segment in front of those of the next, which has the later acknowledgement.
func join(one, next header.IPv4) header.IPv4 {
	octets := append(bytes.Clone(tcpOf(one).Payload()), tcpOf(next).Payload()...)
	return remade(next, -uint32(len(tcpOf(one).Payload())), octets)
}

// remade is a segment with other octets, so many places further in the stream.
func remade(ip header.IPv4, by uint32, octets []byte) header.IPv4 {
	heads := len(ip) - len(tcpOf(ip).Payload())
	made := header.IPv4(append(bytes.Clone(ip[:heads]), octets...))
	made.SetTotalLength(uint16(len(made)))
	made.SetChecksum(0)
	made.SetChecksum(^made.CalculateChecksum())
	tcp := tcpOf(made)
	tcp.SetSequenceNumber(tcp.SequenceNumber() + by)
	tcp.SetChecksum(0)
	pseudo := header.PseudoHeaderChecksum(header.TCPProtocolNumber, made.SourceAddress(), made.DestinationAddress(), uint16(len(tcp)))
	tcp.SetChecksum(^checksum.Checksum(tcp, pseudo))
	return made
}

// TestUserTCPResegmented has a middlebox in each direction between two TCPs in user space: what it makes of the segments is placed ahead
// of order or later, and is right in any case.
//
// RFC 5044, appendix A.4: "However, MPA receivers MUST NOT depend on FPDU Alignment on TCP segment boundaries." [R04]
//
// Proves R03, R04, R05.
func TestUserTCPResegmented(t *testing.T) {
	t.Parallel()
	qp := deep()
	qp.CloseTimeout, qp.CloseLimit = testrig.Soon, -1
	var boxes [2]*middlebox
	over := &transport{user: true, path: bad(40), stack: usertcp.Config{MaxRTO: time.Second}, wrap: func(i int, l usertcp.Link) usertcp.Link {
		boxes[i] = newMiddlebox(l, uint64(i))
		return boxes[i]
	}}
	s := setup{Dialer: iwarp.Dialer{QP: qp}, accept: iwarp.AcceptConfig{QP: qp}, over: over}
	ini, res := s.connect(t)
	converse(t, ini, res, 4)
	for i, e := range []*end{ini, res} {
		n, cuts, joins := e.Stats().Ahead, boxes[i].cuts.Load(), boxes[i].joins.Load()
		if n.Placed == 0 || n.MostOctets == 0 || n.Dropped > 0 || cuts == 0 || joins == 0 {
			t.Errorf("%+v; %d cuts, %d joins", n, cuts, joins)
		}
	}
}
