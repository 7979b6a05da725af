package iwarp_test

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// anyOrder is a link on which a segment may be overtaken by many.
var anyOrder = rig.AwareLink{EMSS: 1420, Disorder: 20}

// TestAware leads dialogues over an MPA-aware TCP whose segments arrive in any order. Both ends close at once, and
// nothing is lost. Where FPDUs are whole segments, MPA holds hardly anything: a short FPDU in which no marker stands.
// Where routers cut and join them, it holds more.
//
// Proves D26, D27, D30, P31, P32, R03, R04, R05.
func TestAware(t *testing.T) {
	for _, recut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := anyOrder
			l.Recut, l.Joined = recut, new(atomic.Int32)
			s := rig.Setup{Dialer: iwarp.Dialer{QP: rig.DeepQueues()}, Accept: iwarp.AcceptConfig{QP: rig.DeepQueues()},
				Over: &rig.Transport{Aware: &l}}
			ini, res := s.Connect(t)
			for range 5 {
				rig.Works(t, ini, res)
				transfer(t, ini, res)
				transfer(t, res, ini)
			}
			rig.PostAll(ini, res)
			rig.Finish(t, ini, res)
			rig.WantAll(t, ini, res)
			if n := l.Joined.Load(); (n > 0) != recut {
				t.Errorf("recut %t: %d segments have joined others", recut, n)
			}
			for _, e := range []*rig.End{ini, res} {
				n := e.Stats().Ahead
				if n.Placed == 0 || n.PlacedBytes == 0 || n.Dropped > 0 || n != e.RNIC.Stats().Ahead ||
					(n.MostBytes > 2*1420) != recut {
					t.Errorf("recut %t: %+v", recut, n)
				}
			}
		})
	}
}

// transfer writes many segments, and compares.
func transfer(t testing.TB, from, to *rig.End) {
	t.Helper()
	const n = 100_000
	src, dst := from.Filled(n, 3, 0), to.MR(n, iwarp.RemoteWrite)
	_, err := from.Write(rig.Within(t), src.Slice(0, n), dst.Remote(0))
	rig.Must(t, err)
	to.MustPostRecv(9)
	rig.Must(t, from.Send(rig.Within(t), iwarp.SGE{}))
	to.WantReceived(9, iwarp.StatusSuccess)
	rig.Same(t, "Write", dst, src)
}

// TestAwareNeedsMarkers has no markers, or no CRCs: all is taken in order, and still sent segment by segment.
//
// Proves R03, S04.
func TestAwareNeedsMarkers(t *testing.T) {
	for _, noCRC := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := rig.AwarePair(anyOrder)
			ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
			lacks := func(n *mpa.Negotiated) { n.MarkersSend, n.MarkersReceive, n.CRC = noCRC, noCRC, !noCRC }
			ini.Over(a, mpa.RoleInitiator, lacks)
			res.Over(b, mpa.RoleResponder, lacks)
			rig.Works(t, ini, res)
			transfer(t, ini, res)
			transfer(t, res, ini)
			rig.Finish(t, ini, res)
			if n := res.Stats(); n.Ahead != (iwarp.Stats{}).Ahead || n.AlignedWrites != n.SocketWrites {
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
		a, b := rig.AwarePair(rig.AwareLink{EMSS: 1420})
		w := fpduWatch{rx: mpa.NewReader(true, true)}
		a.Out.Sniff = w.segment
		ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
		ini.Over(a, mpa.RoleInitiator)
		res.Over(b, mpa.RoleResponder)
		for _, emss := range []int{1420, 1001, 8900} {
			a.Out.SetEMSS(emss)
			time.Sleep(time.Second) // it is asked for now and then
			transfer(t, ini, res)   // the first segments may be of the size before
			w.sizes, w.unaligned = nil, 0
			for range 3 {
				transfer(t, ini, res)
			}
			full := 0
			for _, n := range w.sizes {
				if n > emss {
					t.Fatalf("a segment of %d bytes, the EMSS is %d", n, emss)
				}
				if n > emss-20 {
					full++
				}
			}
			if full < len(w.sizes)*3/4 {
				t.Errorf("EMSS %d: %d of %d segments are full", emss, full, len(w.sizes))
			}
			if w.unaligned > 0 || w.err != nil {
				t.Errorf("EMSS %d: %d of %d segments begin or end within an FPDU; %v",
					emss, w.unaligned, len(w.sizes), w.err)
			}
		}
		rig.Finish(t, ini, res)
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

// A handPlayed peer writes FPDUs by hand to a QP over an MPA-aware TCP, and shows it what it likes. It frames them by a
// Writer, and not by a script.Link, as it goes back to an earlier place in its stream.
type handPlayed struct {
	end    *rig.End
	c      *rig.AwareConn
	w      mpa.Writer
	stream []byte // written so far
}

func playAware(t *testing.T) *handPlayed { return playAwareTo(t, rig.NewEnd(t, iwarp.RNICConfig{})) }

func playAwareTo(t *testing.T, e *rig.End) *handPlayed {
	a, b := rig.AwarePair(rig.AwareLink{EMSS: 1420})
	e.Over(b, mpa.RoleInitiator)
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

// tells has bytes arrive in order.
func (p *handPlayed) tells(b ...[]byte) {
	p.end.T.Helper()
	for _, b := range b {
		p.stream = append(p.stream, b...)
		_, err := p.c.Write(b)
		rig.Must(p.end.T, err)
	}
	synctest.Wait()
}

// shows has bytes arrive ahead of order, so many bytes after those that came in order.
func (p *handPlayed) shows(behind int64, b []byte) {
	p.c.Out.ShowAhead(rig.AwareSegment{At: uint64(int64(len(p.stream)) + behind), B: b})
}

// TestAwareEndsInFPDU has the peer's FIN come within an FPDU: it is told of that as where all comes in order.
//
// Proves Q16, R08.
func TestAwareEndsInFPDU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := playAware(t)
		whole := p.send(1, rig.Pattern(900, 1))
		p.end.MustPostRecv(1, p.end.MR(900, iwarp.LocalWrite).Slice(0, 900))
		p.tells(whole[:600])
		p.shows(100, whole[700:])
		rig.Must(t, p.c.CloseWrite())
		var told *iwarp.TerminateError
		if err := p.wantEndOf(); !errors.As(err, &told) || told.Code != rdmap.CodeMPAConnectionLost || told.Remote ||
			told.Offset != 0 || !rig.Contains(err, "600 bytes into it") {
			t.Errorf("%v", err)
		}
	})
}

// wantEndOf waits until the connection has an error, and closes the peer's end.
func (p *handPlayed) wantEndOf() error {
	p.end.T.Helper()
	synctest.Wait()
	err := p.end.Err()
	rig.Must(p.end.T, p.c.Close())
	rig.Wait(p.end.T, p.end.Done(), "the end of the connection")
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
				b := p.write(mr, to, rig.Pattern(mr.Len(), 7))
				p.shows(int64(len(p.stream)), b)
			}
			p.w = w
		},
		"a flood far ahead": func(p *handPlayed, mr *iwarp.MR) {
			for at := int64(9 << 20); at > 2000; at -= 9001 {
				p.shows(at, rig.Pattern(3000, byte(at)))
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
				mr, err := p.end.PD.Register(memory[700:1400], iwarp.RemoteWrite|iwarp.LocalWrite)
				rig.Must(t, err)
				p.end.MustPostRecv(1)
				p.end.MustPostRecv(2, mr.Slice(0, 700))
				p.tells(p.send(1, nil))
				p.end.WantReceived(1, iwarp.StatusSuccess)
				hostile(p, mr)
				if n := p.end.Stats().Ahead; n.MostBytes > 4<<20 || p.end.State() != iwarp.StateRTS {
					t.Errorf("%+v in state %v", n, p.end.State())
				}
				others(t, p.end)
				p.tells(p.send(2, rig.Pattern(700, 5)))
				if p.end.WantReceived(2, iwarp.StatusSuccess); !bytes.Equal(mr.Bytes(), rig.Pattern(700, 5)) {
					t.Error("the bytes are not those that came in order")
				}
				for i, b := range memory {
					if b != 0x55 && (i < 700 || i >= 1400) {
						t.Fatalf("byte %d outside of the region has changed", i)
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
func others(t *testing.T, e *rig.End) {
	t.Helper()
	a, b := rig.AwarePair(anyOrder)
	ini, res := &rig.End{T: t, RNIC: e.RNIC, PD: rig.NewPD(t, e.RNIC)}, rig.NewEnd(t, iwarp.RNICConfig{})
	ini.Over(a, mpa.RoleInitiator)
	res.Over(b, mpa.RoleResponder)
	rig.Works(t, ini, res)
	rig.Finish(t, ini, res)
}

// TestShownBytes: what many connections hold together of what their TCP shows ahead of order is bounded. Whoever finds
// no room gets everything in order, and none of them ends for it.
func TestShownBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		l := anyOrder
		l.Recut = true
		res := rig.NewEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{HeldBytes: 4000}})
		var from, to [many]*rig.End
		for i := range many {
			a, b := rig.AwarePair(l)
			from[i], to[i] = rig.NewEnd(t, iwarp.RNICConfig{}),
				&rig.End{T: t, RNIC: res.RNIC, PD: rig.NewPD(t, res.RNIC)}
			from[i].Over(a, mpa.RoleInitiator)
			to[i].Over(b, mpa.RoleResponder)
		}
		for i := range many {
			transfer(t, from[i], to[i])
			rig.Works(t, from[i], to[i])
		}
		for i := range many {
			rig.Finish(t, from[i], to[i])
		}
		if n := res.RNIC.Stats().Ahead; n.Dropped == 0 || n.Placed == 0 {
			t.Errorf("%+v", n)
		}
	})
}
