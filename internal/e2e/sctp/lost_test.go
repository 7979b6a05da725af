package sctp

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
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

// TestSCTPLostTwice: a packet of a Send is lost, and lost again, while the peer goes on with Sends of 60 kB to a Shared
// Receive Queue, which have to be held. The peer is held back, what is held stays within bounds, and everything
// arrives.
func TestSCTPLostTwice(t *testing.T) {
	t.Parallel()
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	inbox := newLostInbox(res)
	l := &loser{toServer: true, nth: 700, often: 2}
	dialsOver(ini, l, iwarp.Dialer{}, res, iwarp.AcceptConfig{QP: iwarp.QPConfig{SRQ: inbox.srq, GapTimeout: rig.Soon}})
	rig.Must(t, postsLost(ini, ini.QP))
	inbox.wantAll(l)
	rig.Finish(t, ini, res)
}

// TestSCTPLostAccept: the same with the Accept of a session, which many segments overtake: RFC 5043, section 6.2,
// allows that.
func TestSCTPLostAccept(t *testing.T) {
	t.Parallel()
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	inbox := newLostInbox(ini)
	l := &loser{nth: 1, often: 2}
	dialsOver(ini, l, iwarp.Dialer{QP: iwarp.QPConfig{SRQ: inbox.srq, GapTimeout: rig.Soon}}, res, iwarp.AcceptConfig{
		Prepare: func(qp *iwarp.QP) error { return postsLost(res, qp) },
	})
	inbox.wantAll(l)
	rig.Finish(t, ini, res)
}

const lostSends, lostSize = 60, 60_000

// A lostInbox is an SRQ with receives for all that is sent.
type lostInbox struct {
	end *rig.End
	srq *iwarp.SRQ
	mr  *iwarp.MR
}

func newLostInbox(e *rig.End) *lostInbox {
	// On a busy machine round trips are long, and so is what comes after two losses.
	srq, err := e.PD.CreateSRQ(iwarp.SRQConfig{Depth: lostSends, SendTimeout: rig.Soon})
	rig.Must(e.T, err)
	b := &lostInbox{e, srq, e.MR(lostSends*lostSize, iwarp.LocalWrite)}
	for i := range lostSends {
		rig.Must(e.T, srq.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{b.mr.Slice(i*lostSize, lostSize)}}))
	}
	return b
}

// dialsOver connects two ends by a link that loses something.
func dialsOver(e *rig.End, l *loser, d iwarp.Dialer, res *rig.End, accept iwarp.AcceptConfig) {
	e.T.Helper()
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: rig.Soon}).Listen(
		rig.Within(e.T), "sctp4", "127.0.0.1:0")
	rig.Must(e.T, err)
	e.T.Cleanup(func() { _ = ln.Close() })
	link, err := script.RelaySCTP(ln.Addr().String(), l.pass)
	rig.Must(e.T, err)
	e.T.Cleanup(func() { _ = link.Close() })
	accepted := res.Takes(ln, accept)
	d.PD, d.Network, d.QP, d.Timeout, d.MPA.Timeout = e.PD, new(iwarpsctp.Network),
		rig.Unhurried(d.QP), rig.Soon, rig.Soon
	e.QP, err = d.Dial(rig.Within(e.T), "sctp4", link.Addr())
	rig.Must(e.T, err)
	rig.Must(e.T, <-accepted)
}

// postsLost posts numbered Sends. It is a Prepare, too.
func postsLost(e *rig.End, qp *iwarp.QP) error {
	for i := range lostSends {
		source, err := e.PD.Register(numbered(lostSize, i), 0)
		if err == nil {
			err = qp.PostSend(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend,
				SGL: []iwarp.SGE{source.Slice(0, lostSize)}, Unsignaled: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wantAll waits for all that was sent, of which no more was held at a time than is allowed.
func (b *lostInbox) wantAll(l *loser) {
	b.end.T.Helper()
	for i := range lostSends {
		b.end.WantReceived(uint64(i), iwarp.StatusSuccess)
		if got := b.mr.Bytes()[i*lostSize:][:lostSize]; string(got) != string(numbered(lostSize, i)) {
			b.end.T.Fatalf("message %d is message %d", i, binary.BigEndian.Uint32(got))
		}
	}
	const window = 256 << 10
	a := b.end.Stats().Ahead
	b.end.T.Logf("held %d bytes, %d at a time", a.HeldBytes, a.MostBytes)
	if lost := l.times(); lost != l.often || a.MostBytes > 4*window {
		b.end.T.Errorf("lost %d times: %+v", lost, a)
	}
}

// TestSCTPReordered: over a link that changes the order of packets, bytes of Writes, Sends and Read Responses are
// placed ahead of those in front of them, which Stats counts, and everything is delivered in the order of sending: a
// Send that tells of a Write comes when all of that is there.
//
// Proves D26.
func TestSCTPReordered(t *testing.T) {
	t.Parallel()
	const rounds, size = 40, 20_000
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: rig.Soon}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	link, err := script.RelaySCTP(ln.Addr().String(), script.Permute(20, 1))
	rig.Must(t, err)
	defer link.Close()
	accepted := res.Takes(ln, iwarp.AcceptConfig{})
	d := iwarp.Dialer{Network: new(iwarpsctp.Network), PD: ini.PD, QP: rig.Unhurried(iwarp.QPConfig{}),
		MPA: mpa.Offer{Timeout: rig.Soon}}
	ini.QP, err = d.Dial(rig.Within(t), "sctp4", link.Addr())
	rig.Must(t, err)
	rig.Must(t, <-accepted)

	inbox, sink := res.MR(rounds*size, iwarp.LocalWrite), res.MR(size, iwarp.RemoteWrite|iwarp.RemoteRead)
	for i := range rounds {
		res.MustPostRecv(uint64(i), inbox.Slice(i*size, size))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		source, back := ini.MR(size, iwarp.LocalWrite), ini.MR(size, iwarp.LocalWrite)
		for i := range rounds {
			copy(source.Bytes(), numbered(size, i))
			_, err := ini.Write(rig.Within(t), source.Slice(0, size), sink.Remote(0))
			rig.Must(t, err)
			rig.Must(t, ini.Send(rig.Within(t), source.Slice(0, size)))
			if _, err = ini.Read(rig.Within(t), back.Slice(0, size), sink.Remote(0)); err != nil ||
				string(back.Bytes()) != string(numbered(size, i)) {
				t.Errorf("round %d: read something else (%v)", i, err)
				return
			}
		}
	}()
	for i := range rounds {
		res.WantReceived(uint64(i), iwarp.StatusSuccess)
		if got := inbox.Bytes()[i*size:][:size]; string(got) != string(numbered(size, i)) {
			t.Fatalf("message %d is message %d", i, binary.BigEndian.Uint32(got))
		}
	}
	<-done
	for who, e := range map[string]*rig.End{"the Initiator, by Reads": ini, "the Responder": res} {
		a := e.Stats().Ahead
		t.Logf("%s: %d bytes in %d segments placed ahead, %d bytes held, %d at a time",
			who, a.PlacedBytes, a.Placed, a.HeldBytes, a.MostBytes)
		if a.PlacedBytes == 0 || a.Dropped > 0 || a.MostBytes > a.PlacedBytes {
			t.Errorf("%s: %+v", who, a)
		}
	}
	rig.Finish(t, ini, res)
}

// numbered are the bytes of a round, which begin with its number.
func numbered(size, round int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + round*13)
	}
	binary.BigEndian.PutUint32(b, uint32(round))
	return b
}
