package sctpudp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// echo says COOKIE ECHO.
func (s *stranger) echo(theirs *chunk.Setup) {
	s.Helper()
	s.says(theirs.Tag, chunk.TypeCookieEcho, 0, theirs.Cookie)
}

// talks shows that an association is up.
func (s *stranger) talks(theirs *chunk.Setup, c *end, text string) {
	s.Helper()
	s.says(theirs.Tag, chunk.TypeData, 7, data(s.ours.TSN, 1, 16, text))
	s.ours.TSN++
	if m := within(s.T, c.messages); string(m.Data) != text {
		s.Errorf("got %q, want %q", m.Data, text)
	}
}

// TestOldCookie: the COOKIE ECHO of an association that has ended does nothing to the next one with the same peer, and
// neither does one that was made before it.
//
// RFC 9260, section 5.2.4: its tags are not those of the association, and it has no Tie-Tags.
func TestOldCookie(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	unused := s.asks()
	first, old := s.opens(e)
	s.says(first.Tag, chunk.TypeAbort, 0, nil)
	within(t, old.lost)
	s.ours.Tag = random()
	second, c := s.opens(e)
	for _, theirs := range []*chunk.Setup{&first, &unused} {
		s.echo(theirs)
		s.talks(&second, c, "still there")
	}
	if n, peers, _ := e.count(); n != 1 || peers != 1 || len(e.accepted) > 0 {
		t.Errorf("%d associations with %d peers", n, peers)
	}
}

// TestReplay: packets of an association that has ended do not begin it again, however soon they come.
func TestReplay(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs, c := s.opens(e)
	s.talks(&theirs, c, "once")
	s.says(theirs.Tag, chunk.TypeAbort, 0, nil)
	within(t, c.lost)
	s.echo(&theirs)
	if tag, _ := s.hears(chunk.TypeAbort); tag != s.ours.Tag {
		t.Errorf("ABORT with tag %x", tag)
	}
	s.says(theirs.Tag, chunk.TypeData, 7, data(1000, 1, 16, "once"))
	s.hears(chunk.TypeAbort)
	if n, _, _ := e.count(); n != 0 || len(e.accepted) > 0 {
		t.Errorf("%d associations", n)
	}
}

// TestStranger: who is at the same address, and says that it is at the same port of SCTP, is somebody else if its port
// of UDP is another. Both have their associations.
func TestStranger(t *testing.T) {
	e := endpoint(t, true, Config{})
	s, stranger := meet(t, e), meet(t, e)
	stranger.as = s.port()
	theirs, c := s.opens(e)
	his, other := stranger.opens(e)
	s.talks(&theirs, c, "mine")
	stranger.talks(&his, other, "his")
	stranger.says(theirs.Tag+1, chunk.TypeAbort, 0, nil)
	// whose tag is known to be the peer's, from another place
	stranger.says(s.ours.Tag, chunk.TypeAbort, chunk.FlagT, nil)
	s.talks(&theirs, c, "still mine")
	if n, peers, _ := e.count(); n != 2 || peers != 2 {
		t.Errorf("%d associations with %d peers", n, peers)
	}
}

// TestMoves: a peer may get another port of UDP, as behind a NAT, and all that has its tag is the association's, which
// answers to where the last came from. Without the tag nothing moves.
//
// RFC 6951, section 5.4.
func TestMoves(t *testing.T) {
	e := endpoint(t, true, Config{})
	s, moved := meet(t, e), meet(t, e)
	moved.as = s.port()
	theirs, c := s.opens(e)
	moved.says(theirs.Tag+1, chunk.TypeData, 7, data(1000, 1, 16, "not the peer"))
	s.talks(&theirs, c, "here")
	s.hears(chunk.TypeSack)
	moved.ours = s.ours
	moved.talks(&theirs, c, "there")
	moved.hears(chunk.TypeSack)
	if n, peers, _ := e.count(); n != 1 || peers != 1 {
		t.Errorf("%d associations with %d peers", n, peers)
	}
	// The peer at its new place may begin anew, and one at the old place is a stranger.
	moved.ours.Tag = random()
	_, fresh := moved.opens(e)
	if err := within(t, c.lost); !errors.Is(err, lowerlayer.ErrRestarted) {
		t.Errorf("the old one: %v", err)
	}
	s.ours.Tag = random()
	s.opens(e)
	select {
	case err := <-fresh.lost:
		t.Errorf("the new one: %v", err)
	default:
	}
	if n, peers, _ := e.count(); n != 2 || peers != 2 {
		t.Errorf("%d associations with %d peers", n, peers)
	}
}

// TestStaleCookie: a cookie that is too old begins nothing, and its sender hears why, unless its association is up.
//
// RFC 9260, sections 5.1.5 and 5.2.4.
func TestStaleCookie(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	h := chunk.Header{Source: s.port(), Destination: s.to.Port()}
	from := s.pc.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort()
	theirs := e.setup()
	minted := func(age time.Duration) {
		tok := token{minted: time.Since(e.began) - age, ours: theirs, theirs: s.ours}
		theirs.Cookie = e.minter.mint(&tok, from, h)
	}
	minted(cookieLife + time.Second)
	s.echo(&theirs)
	tag, c := s.hears(chunk.TypeError)
	causes, _ := chunk.Parameters(c.Value)
	if tag != s.ours.Tag || len(causes) != 1 || causes[0].Type != chunk.CauseStaleCookie ||
		binary.BigEndian.Uint32(causes[0].Value) < 1e6 {
		t.Errorf("ERROR with tag %x: %+v", tag, causes)
	}
	minted(0)
	s.echo(&theirs)
	s.hears(chunk.TypeCookieAck)
	minted(cookieLife + time.Second)
	s.echo(&theirs)
	s.hears(chunk.TypeCookieAck)
}

// TestDialStale: a Dial whose cookie is answered so ends.
func TestDialStale(t *testing.T) {
	d := getsEcho(t.Context(), t, endpoint(t, false, Config{}))
	cause := chunk.Parameter{Type: chunk.CauseStaleCookie, Value: make([]byte, 4)}
	d.says(d.theirs.Tag, chunk.TypeError, 0, cause.Append(nil))
	if err := within(t, d.failed); !errors.Is(err, lowerlayer.ErrRefused) {
		t.Error(err)
	}
}

// TestLedger: a cookie is known as long as it is good, and what has to be forgotten early takes all older ones with it.
func TestLedger(t *testing.T) {
	var l ledger
	l.spend(time.Second, spending{1, time.Second})
	if !l.knows(spending{1, time.Second}) || l.knows(spending{2, 0}) {
		t.Error("not the one that was spent, or another")
	}
	l.spend(time.Second+cookieLife+1, spending{2, cookieLife})
	if len(l.tags) != 1 || len(l.order) != 1 {
		t.Errorf("%d are known", len(l.tags))
	}
	l = ledger{}
	l.spend(100*time.Second, spending{1, 99 * time.Second})
	l.spend(101*time.Second, spending{2, 100 * time.Second})
	if !l.knows(spending{1, 99 * time.Second}) || l.knows(spending{3, 98 * time.Second}) {
		t.Error("what is good is forgotten, and takes with it what is older")
	}
	l = ledger{}
	for i := range uint32(maxSpent) + 10 {
		l.spend(time.Second, spending{i, time.Duration(i)})
	}
	if len(l.tags) != maxSpent || len(l.order) != maxSpent {
		t.Errorf("%d are known, of %d at most", len(l.tags), maxSpent)
	}
	for i, want := range map[uint32]bool{0: true, 9: true, 10: true, maxSpent + 9: true} {
		if l.knows(spending{i, time.Duration(i)}) != want {
			t.Errorf("cookie %d", i)
		}
	}
	if !l.knows(spending{1 << 30, 9}) || l.knows(spending{1 << 30, 10}) {
		t.Error("not all that are older than those forgotten, or others")
	}
}

// TestRetired: associations that nobody has accepted end with the Listener, and its socket with them, even if they come
// while it retires.
func TestRetired(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	theirs := s.asks()
	s.echo(&theirs)
	s.hears(chunk.TypeCookieAck)
	e.Retire()
	if tag, c := s.hears(chunk.TypeAbort); tag != s.ours.Tag || c.Reason() == "" {
		t.Errorf("ABORT with tag %x, %q", tag, c.Reason())
	}
	select {
	case <-e.done:
	case <-time.After(patience):
		t.Error("the socket is still open")
	}
	for range 20 {
		e := endpoint(t, true, Config{})
		s := meet(t, e)
		theirs := s.asks()
		s.echo(&theirs)
		go e.Retire()
		select {
		case <-e.done:
		case <-time.After(patience):
			t.Fatal("the socket is still open")
		}
	}
}
