package iwarp_test

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// anyOrder is a link on which a segment may be overtaken by many.
var anyOrder = link{emss: 1420, disorder: 20}

// TestAware leads dialogues over an MPA-aware TCP whose segments arrive in any order. Both ends close at once, and
// nothing is lost. Where FPDUs are whole segments, MPA holds hardly anything: a short FPDU in which no marker stands.
// Where routers cut and join them, it holds more.
//
// Proves D26, D27, D30, P31, P32, R03, R04, R05.
func TestAware(t *testing.T) {
	for _, recut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := anyOrder
			l.recut, l.joined = recut, new(atomic.Int32)
			s := setup{Dialer: iwarp.Dialer{QP: deep()}, accept: iwarp.AcceptConfig{QP: deep()}, over: &transport{aware: &l}}
			ini, res := s.connect(t)
			for range 5 {
				works(t, ini, res)
				transfer(t, ini, res)
				transfer(t, res, ini)
			}
			postAll(ini, res)
			finish(t, ini, res)
			wantAll(t, ini, res)
			if n := l.joined.Load(); (n > 0) != recut {
				t.Errorf("recut %t: %d segments have joined others", recut, n)
			}
			for _, e := range []*end{ini, res} {
				n := e.Stats().Ahead
				if n.Placed == 0 || n.PlacedOctets == 0 || n.Dropped > 0 || n != e.rnic.Stats().Ahead || (n.MostOctets > 2*1420) != recut {
					t.Errorf("recut %t: %+v", recut, n)
				}
			}
		})
	}
}

// transfer writes many segments, and compares.
func transfer(t testing.TB, from, to *end) {
	t.Helper()
	const n = 100_000
	src, dst := from.filled(n, 3, 0), to.mr(n, iwarp.RemoteWrite)
	_, err := from.Write(within(t), src.Slice(0, n), dst.Remote(0))
	must(t, err)
	to.postRecv(9)
	must(t, from.Send(within(t), iwarp.SGE{}))
	to.wantReceived(9, iwarp.StatusSuccess)
	same(t, "Write", dst, src)
}

// TestAwareNeedsMarkers has no markers, or no CRCs: all is taken in order, and still sent segment by segment.
//
// Proves R03, S04.
func TestAwareNeedsMarkers(t *testing.T) {
	for _, noCRC := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := awarePair(anyOrder)
			ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
			lacks := func(n *mpa.Negotiated) { n.MarkersSend, n.MarkersReceive, n.CRC = noCRC, noCRC, !noCRC }
			ini.over(a, mpa.RoleInitiator, lacks)
			res.over(b, mpa.RoleResponder, lacks)
			works(t, ini, res)
			transfer(t, ini, res)
			transfer(t, res, ini)
			finish(t, ini, res)
			if n := res.Stats(); n.Ahead != (iwarp.Ahead{}) || n.AlignedWrites != n.SocketWrites {
				t.Errorf("%+v, %d of %d writes aligned", n.Ahead, n.AlignedWrites, n.SocketWrites)
			}
		})
	}
}

// TestAwareAligned looks at the segments: each holds whole FPDUs, none is larger than TCP's, most are full. The EMSS
// shrinks and grows in between, and may be no multiple of four.
//
// Proves S03, S04.
func TestAwareAligned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := awarePair(link{emss: 1420})
		w := fpduWatch{rx: mpa.NewReader(true, true)}
		a.out.sniff = w.segment
		ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
		ini.over(a, mpa.RoleInitiator)
		res.over(b, mpa.RoleResponder)
		for _, emss := range []int{1420, 1001, 8900} {
			a.out.setEMSS(emss)
			time.Sleep(time.Second) // it is asked for now and then
			transfer(t, ini, res)   // the first segments may be of the size before
			w.sizes, w.unaligned = nil, 0
			for range 3 {
				transfer(t, ini, res)
			}
			full := 0
			for _, n := range w.sizes {
				if n > emss {
					t.Fatalf("a segment of %d octets, the EMSS is %d", n, emss)
				}
				if n > emss-20 {
					full++
				}
			}
			if full < len(w.sizes)*3/4 {
				t.Errorf("EMSS %d: %d of %d segments are full", emss, full, len(w.sizes))
			}
			if w.unaligned > 0 || w.err != nil {
				t.Errorf("EMSS %d: %d of %d segments begin or end within an FPDU; %v", emss, w.unaligned, len(w.sizes), w.err)
			}
		}
		finish(t, ini, res)
	})
}

// A fpduWatch reads a stream of FPDUs segment by segment.
type fpduWatch struct {
	rx        mpa.Reader
	rest      []byte // of an FPDU that is not whole yet
	sizes     []int  // of the segments
	unaligned int    // those that do not hold whole FPDUs
	err       error
}

func (w *fpduWatch) segment(b []byte) {
	w.sizes = append(w.sizes, len(b))
	w.rest = append(w.rest, b...)
	aligned := len(w.rest) == len(b)
	for n := 1; n > 0 && w.err == nil; {
		_, n, w.err = w.rx.Next(w.rest)
		w.rest = w.rest[n:]
	}
	if !aligned || len(w.rest) > 0 {
		w.unaligned++
	}
}

// over puts the QP, or a new one, on a connection whose startup is over, with markers and CRCs.
func (e *end) over(c net.Conn, role mpa.Role, change ...func(*mpa.Negotiated)) {
	e.t.Helper()
	n := mpa.Negotiated{
		Role: role, DDPVersion: 1, RDMAPVersion: 1, SendFirst: role == mpa.RoleInitiator, CRC: true,
		MarkersSend: true, MarkersReceive: true, IRD: 4, ORD: 4,
	}
	for _, f := range change {
		f(&n)
	}
	if e.QP == nil {
		e.QP = create(e.t, e.pd, iwarp.QPConfig{})
	}
	must(e.t, e.ModifyRTS(c, n, nil))
}

// A handPlayed peer writes FPDUs by hand to a QP over an MPA-aware TCP, and shows it what it likes. It frames them by a Writer, and not by
// a script.Link, as it goes back to an earlier place in its stream.
type handPlayed struct {
	end    *end
	c      *awareConn
	w      mpa.Writer
	stream []byte // written so far
}

func playAware(t *testing.T) *handPlayed { return playAwareTo(t, newEnd(t, iwarp.RNICConfig{})) }

func playAwareTo(t *testing.T, e *end) *handPlayed {
	a, b := awarePair(link{emss: 1420})
	e.over(b, mpa.RoleInitiator)
	t.Cleanup(func() { _ = e.Abort(); _ = a.Reset() })
	return &handPlayed{end: e, c: a, w: mpa.NewWriter(true, true)}
}

// fpdu frames a segment as the next of the stream.
func (p *handPlayed) fpdu(op rdmap.Opcode, fill func(*ddp.Header), payload []byte) []byte {
	h := op.Header(1)
	h.Last = true
	fill(&h)
	return p.w.Append(nil, append(h.Append(nil), payload...))
}

func (p *handPlayed) write(mr *iwarp.MR, to int, payload []byte) []byte {
	return p.fpdu(rdmap.OpWrite, func(h *ddp.Header) { h.STag, h.TO = mr.STag(), mr.Remote(0).TO+uint64(to) }, payload)
}

func (p *handPlayed) send(msn uint32, payload []byte) []byte {
	return p.fpdu(rdmap.OpSend, func(h *ddp.Header) { h.MSN = msn }, payload)
}

// tells has octets arrive in order.
func (p *handPlayed) tells(b ...[]byte) {
	p.end.t.Helper()
	for _, b := range b {
		p.stream = append(p.stream, b...)
		_, err := p.c.Write(b)
		must(p.end.t, err)
	}
	synctest.Wait()
}

// shows has octets arrive ahead of order, so many octets after those that came in order.
func (p *handPlayed) shows(behind int64, b []byte) {
	p.c.out.showAhead(segment{uint64(int64(len(p.stream)) + behind), b})
}

// TestAwareEndsInFPDU has the peer's FIN come within an FPDU: it is told of that as where all comes in order.
//
// Proves Q16, R08.
func TestAwareEndsInFPDU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := playAware(t)
		whole := p.send(1, pattern(900, 1))
		p.end.postRecv(1, p.end.mr(900, iwarp.LocalWrite).Slice(0, 900))
		p.tells(whole[:600])
		p.shows(100, whole[700:])
		must(t, p.c.CloseWrite())
		var told *iwarp.TerminateError
		if err := p.wantEndOf(); !errors.As(err, &told) || told.Code != rdmap.CodeMPAConnectionLost || told.Remote || told.Offset != 0 || !contains(err, "600 octets into it") {
			t.Errorf("%v", err)
		}
	})
}

// wantEndOf waits until the connection has an error, and closes the peer's end.
func (p *handPlayed) wantEndOf() error {
	p.end.t.Helper()
	synctest.Wait()
	err := p.end.Err()
	must(p.end.t, p.c.Close())
	wait(p.end.t, p.end.Done(), "the end of the connection")
	return err
}

// TestAwareHostile has a peer show what it does not send: a QP takes what comes in order for the truth, keeps to its
// bounds, writes nothing outside of its regions, and others go on.
//
// Proves R06, R07, Z12, Z31.
func TestAwareHostile(t *testing.T) {
	fill := bytes.Repeat([]byte{0xee}, 700)
	for name, hostile := range map[string]func(p *handPlayed, mr *iwarp.MR){
		"segments that disagree": func(p *handPlayed, mr *iwarp.MR) {
			w := p.w
			lie := p.send(2, fill)
			p.w = w
			p.shows(0, lie)
			p.shows(0, lie[:500])
			p.shows(300, fill)
		},
		"markers that lie": func(p *handPlayed, mr *iwarp.MR) {
			for at := range 1500 {
				b := bytes.Repeat([]byte{0, byte(at)}, 700)
				p.shows(int64(4*at), b)
			}
		},
		"a Write to elsewhere": func(p *handPlayed, mr *iwarp.MR) {
			w := p.w
			for _, to := range []int{-1, -700, 1, 1 << 30, -1 << 30} {
				b := p.write(mr, to, pattern(mr.Len(), 7))
				p.shows(int64(len(p.stream)), b)
			}
			p.w = w
		},
		"a flood far ahead": func(p *handPlayed, mr *iwarp.MR) {
			for at := int64(9 << 20); at > 2000; at -= 9001 {
				p.shows(at, pattern(3000, byte(at)))
			}
			p.shows(1<<62, fill)
			p.shows(-1<<62, fill)
		},
		"tiny FPDUs without end": func(p *handPlayed, mr *iwarp.MR) {
			w, at := p.w, 0
			p.send(2, fill)
			for range 30_000 {
				b := p.fpdu(rdmap.OpWrite, func(h *ddp.Header) { h.STag = 1 }, nil)
				p.shows(int64(726+at), b)
				at += len(b)
			}
			p.w = w
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := playAware(t)
				memory := slices.Repeat([]byte{0x55}, 2100)
				mr, err := p.end.pd.Register(memory[700:1400], iwarp.RemoteWrite|iwarp.LocalWrite)
				must(t, err)
				p.end.postRecv(1)
				p.end.postRecv(2, mr.Slice(0, 700))
				p.tells(p.send(1, nil))
				p.end.wantReceived(1, iwarp.StatusSuccess)
				hostile(p, mr)
				if n := p.end.Stats().Ahead; n.MostOctets > 4<<20 || p.end.State() != iwarp.StateRTS {
					t.Errorf("%+v in state %v", n, p.end.State())
				}
				others(t, p.end)
				p.tells(p.send(2, pattern(700, 5)))
				if p.end.wantReceived(2, iwarp.StatusSuccess); !bytes.Equal(mr.Bytes(), pattern(700, 5)) {
					t.Error("the octets are not those that came in order")
				}
				for i, b := range memory {
					if b != 0x55 && (i < 700 || i >= 1400) {
						t.Fatalf("octet %d outside of the region has changed", i)
					}
				}
				p.tells(p.fpdu(rdmap.OpWrite, func(h *ddp.Header) { h.STag = 77 }, []byte{1}))
				var told *iwarp.TerminateError
				if err := p.wantEndOf(); !errors.As(err, &told) || told.Code != rdmap.CodeDDPInvalidSTag {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// others connects two QPs, one of them on the RNIC of e, and has them work.
func others(t *testing.T, e *end) {
	t.Helper()
	a, b := awarePair(anyOrder)
	ini, res := &end{t: t, rnic: e.rnic, pd: newPD(t, e.rnic)}, newEnd(t, iwarp.RNICConfig{})
	ini.over(a, mpa.RoleInitiator)
	res.over(b, mpa.RoleResponder)
	works(t, ini, res)
	finish(t, ini, res)
}
