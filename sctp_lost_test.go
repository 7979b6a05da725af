package iwarp_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/sctp/chunk"
)

// A loser loses a message of a peer's, with all that it shares its packets with, and as often as it is told.
type loser struct {
	toServer bool
	nth      int // message in that direction
	often    int

	mu   sync.Mutex
	tsn  []byte // of the message
	lost int
}

// pass is a script.Pass.
func (l *loser) pass(_ *script.SCTPFlow, toServer bool, packet []byte, deliver func([]byte)) {
	if toServer != l.toServer || !l.loses(packet) {
		deliver(packet)
	}
}

func (l *loser) loses(packet []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, _ := chunk.In(packet)
	for _, c := range all {
		if c.Type != chunk.TypeData {
			continue
		}
		if l.nth--; l.nth == 0 {
			l.tsn = append(l.tsn, c.Value[:4]...)
		}
		if l.lost < l.often && l.tsn != nil && string(c.Value[:4]) == string(l.tsn) {
			l.lost++
			return true
		}
	}
	return false
}

// times returns how often it has lost the message.
func (l *loser) times() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// TestSCTPLostTwice: a packet of a Send is lost, and lost again, while the peer goes on with Sends of 60 kB to a Shared Receive
// Queue, which have to be held. The peer is held back, what is held stays within bounds, and everything arrives.
func TestSCTPLostTwice(t *testing.T) {
	t.Parallel()
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	inbox := newLostInbox(res)
	l := &loser{toServer: true, nth: 700, often: 2}
	ini.dialsOver(l, iwarp.Dialer{}, res, iwarp.AcceptConfig{QP: iwarp.QPConfig{SRQ: inbox.srq, GapTimeout: soon}})
	must(t, ini.postsLost(ini.QP))
	inbox.wantAll(l)
	finish(t, ini, res)
}

// TestSCTPLostAccept: the same with the Accept of a session, which many segments overtake: RFC 5043, section 6.2, allows
// that.
func TestSCTPLostAccept(t *testing.T) {
	t.Parallel()
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	inbox := newLostInbox(ini)
	l := &loser{nth: 1, often: 2}
	ini.dialsOver(l, iwarp.Dialer{QP: iwarp.QPConfig{SRQ: inbox.srq, GapTimeout: soon}}, res, iwarp.AcceptConfig{Prepare: res.postsLost})
	inbox.wantAll(l)
	finish(t, ini, res)
}

const lostSends, lostSize = 60, 60_000

// A lostInbox is an SRQ with receives for all that is sent.
type lostInbox struct {
	end *end
	srq *iwarp.SRQ
	mr  *iwarp.MR
}

func newLostInbox(e *end) *lostInbox {
	// On a busy machine round trips are long, and so is what comes after two losses.
	srq, err := e.pd.CreateSRQ(iwarp.SRQConfig{Depth: lostSends, SendTimeout: soon})
	must(e.t, err)
	b := &lostInbox{e, srq, e.mr(lostSends*lostSize, iwarp.LocalWrite)}
	for i := range lostSends {
		must(e.t, srq.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{b.mr.Slice(i*lostSize, lostSize)}}))
	}
	return b
}

// dialsOver connects two ends by a link that loses something.
func (e *end) dialsOver(l *loser, d iwarp.Dialer, res *end, accept iwarp.AcceptConfig) {
	e.t.Helper()
	ln, err := iwarp.Listen(within(e.t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: soon})
	must(e.t, err)
	e.t.Cleanup(func() { _ = ln.Close() })
	link, err := script.RelaySCTP(ln.Addr().String(), l.pass)
	must(e.t, err)
	e.t.Cleanup(func() { _ = link.Close() })
	accepted := res.takes(ln, accept)
	d.PD, d.QP, d.Timeout, d.MPA.Timeout = e.pd, unhurried(d.QP), soon, soon
	e.QP, err = d.Dial(within(e.t), "sctp4", link.Addr())
	must(e.t, err)
	must(e.t, <-accepted)
}

// postsLost posts numbered Sends. It is a Prepare, too.
func (e *end) postsLost(qp *iwarp.QP) error {
	for i := range lostSends {
		source, err := e.pd.Register(numbered(lostSize, i), 0)
		if err == nil {
			err = qp.PostSend(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, SGL: []iwarp.SGE{source.Slice(0, lostSize)}, Unsignaled: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wantAll waits for all that was sent, of which no more was held at a time than is allowed.
func (b *lostInbox) wantAll(l *loser) {
	b.end.t.Helper()
	for i := range lostSends {
		b.end.wantReceived(uint64(i), iwarp.StatusSuccess)
		if got := b.mr.Bytes()[i*lostSize:][:lostSize]; string(got) != string(numbered(lostSize, i)) {
			b.end.t.Fatalf("message %d is message %d", i, binary.BigEndian.Uint32(got))
		}
	}
	const window = 256 << 10
	a := b.end.Stats().Ahead
	b.end.t.Logf("held %d octets, %d at a time", a.HeldOctets, a.MostOctets)
	if lost := l.times(); lost != l.often || a.MostOctets > 4*window {
		b.end.t.Errorf("lost %d times: %+v", lost, a)
	}
}
