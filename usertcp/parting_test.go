package usertcp

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A leaver is a connection whose TCP does only what a test says.
type leaver struct {
	t    *testing.T
	c    *Conn
	ack  uint32 // what TCP acknowledges
	mu   sync.Mutex
	sent []segment // by the parting
	told []segment // TCP, by the parting
}

// leaves returns one that begins to look after its FIN, before it has sent that.
func leaves(t *testing.T) *leaver {
	l := &leaver{t: t}
	send := func(packet []byte) {
		s, _ := parseSegment(packet)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sent = append(l.sent, s)
	}
	s := &Stack{taps: &taps{send: send}}
	s.nic = newNIC(nil, 1500, s.taps)
	s.nic.Attach(l)
	l.c = &Conn{stack: s, flow: blankFlow(ends{})}
	l.c.end.init()
	l.c.end.parting.wait(l.c)
	return l
}

// DeliverNetworkPacket is stack.NetworkDispatcher's.
func (l *leaver) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	s, _ := parseSegment(pkt.ToView().AsSlice())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, s)
}

// DeliverLinkPacket is stack.NetworkDispatcher's.
func (l *leaver) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// tcp sends a segment.
func (l *leaver) tcp(m made) {
	l.ack = m.ack
	packet := m.packet(0)
	s, _ := parseSegment(packet)
	l.c.flow.last.outbound(packet, &s)
}

// fin has TCP send a FIN with nothing in front of it that is not acknowledged.
func (l *leaver) fin(seq uint32) {
	l.tcp(made{seq: seq, ack: 7000, flags: header.TCPFlagFin | header.TCPFlagAck})
	l.c.flow.una.Store(seq)
}

// after returns what was sent, and what TCP was told, when a time has passed.
func (l *leaver) after(d time.Duration) (sent, told []segment) {
	time.Sleep(d)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, told, l.sent, l.told = l.sent, l.told, nil, nil
	return sent, told
}

// silent takes a time in which nothing is sent.
func (l *leaver) silent(what string, d time.Duration) {
	l.t.Helper()
	if sent, told := l.after(d); len(sent) > 0 || len(told) > 0 {
		l.t.Errorf("%s: sent %v, and TCP is told %v", what, sent, told)
	}
}

// sends takes a time, at the end of which a FIN is sent, and not before.
func (l *leaver) sends(what string, fin uint32, d time.Duration) {
	l.t.Helper()
	l.silent(what, d-1)
	sent, _ := l.after(time.Nanosecond)
	if len(sent) != 1 || sent[0].seq != fin || sent[0].ack != l.ack ||
		!sent[0].has(header.TCPFlagFin) || !sent[0].intact() {
		l.t.Errorf("%s: sent %v, want the FIN", what, sent)
	}
}

// TestPartingLooks: whether TCP is silent is looked at until the end is known, and after twice the time where the FIN
// was sent again.
//
// RFC 6298, section 5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")."
func TestPartingLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leaves(t)
		l.silent("before the FIN", 3*time.Second+time.Second/2)
		l.fin(100)
		l.silent("TCP has sent since the last look", time.Second)
		l.sends("the first silence", 100, time.Second-time.Second/2)
		l.sends("the second", 100, 2*time.Second)
		l.sends("the third", 100, 4*time.Second)
		l.fin(100)
		l.silent("TCP has sent again", 8*time.Second)
		l.sends("the time stays", 100, 8*time.Second)
		l.tcp(made{seq: 99, ack: 7000, flags: header.TCPFlagAck, data: []byte("m")})
		l.silent("TCP has sent a byte again", 16*time.Second)
		l.sends("it is silent again", 100, 16*time.Second)
		l.tcp(made{seq: 101, ack: 7001, flags: header.TCPFlagAck})
		l.sends("TCP has sent an acknowledgement", 100, 32*time.Second)
		l.c.end.parting.wait(l.c)
		l.silent("it is looked once", 64*time.Second-1)
		close(l.c.end.told)
		l.c.end.parting.stop()
		l.silent("the end is known", time.Hour)
	})
}

// tells takes a time, at the end of which TCP is told what the peer lacks, and not before.
func (l *leaver) tells(what string, una uint32, d time.Duration) {
	l.t.Helper()
	l.silent(what, d-1)
	_, told := l.after(time.Nanosecond)
	if len(told) != 1 || told[0].ack != una || !told[0].intact() {
		l.t.Errorf("%s: TCP is told %v, want that %d is not acknowledged", what, told, una)
	}
}

// TestPartingTells: TCP is told what the peer lacks in front of the FIN where both SYNs permit selective
// acknowledgements, and not otherwise.
//
// RFC 2018, section 2: "This two-byte option may be sent in a SYN by a TCP that has been extended to receive (and
// presumably process) the SACK option once the connection has opened."
func TestPartingTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leaves(t)
		l.c.flow.gaps.due.Store(true)
		l.silent("before the FIN", 2*time.Second)
		l.fin(100)
		l.c.flow.una.Store(90)
		l.c.flow.gaps.due.Store(false)
		l.silent("not permitted", 3*time.Second+time.Second/2)
		l.c.flow.gaps.due.Store(true)
		l.tells("permitted", 90, time.Second-time.Second/2)
		l.c.flow.una.Store(95)
		l.tells("some is acknowledged", 95, 2*time.Second)
		l.c.flow.una.Store(100)
		l.sends("all but the FIN is acknowledged", 100, 4*time.Second)
		close(l.c.end.told)
		l.c.end.parting.stop()
	})
}

// TestPartingEnded: where the end is known at the first wait, it is not looked.
func TestPartingEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leaves(t)
		l.c.end.parting.stop()
		l.c.end.parting = parting{}
		close(l.c.end.told)
		l.fin(100)
		l.c.end.parting.wait(l.c)
		l.silent("the end is known", time.Hour)
	})
}
