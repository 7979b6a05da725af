//go:build interop && linux

package align_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestShrinkingMTU makes the MTU of the path smaller while a transfer is under way: nothing is
// lost, the EMSS is followed, and after what TCP had in its buffer then, segments are aligned
// again.
//
// Proves S03, S04.
func TestShrinkingMTU(t *testing.T) {
	for _, c := range []struct {
		what    string
		command func(l *link) []string
	}{
		{"of the interface", func(l *link) []string {
			return []string{"-n", l.a.netns, "link", "set", l.a.device, "mtu", "1400"}
		}},
		{"of the route", func(l *link) []string {
			return []string{"-n", l.a.netns, "route", "replace", addrB + "/32", "dev", l.a.device, "mtu", "1400"}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			again := true
			for attempt := 1; again && attempt <= attempts && !t.Failed(); attempt++ {
				// each on a link of its own
				t.Run(fmt.Sprint(attempt), func(t *testing.T) { again = !shrink(t, c.command) })
			}
			if again {
				t.Errorf("too few are aligned, %d times", attempts)
			}
		})
	}
}

// shrink is one transfer. It reports whether segments were aligned, before the change and after it.
func shrink(t *testing.T, command func(l *link) []string) bool {
	t.Helper()
	l := newLink(t, 1500, false)
	r := l.record(t, true)
	port, changed := l.transfer(t, func() { ip(t, command(l)...) })
	r.stop()
	return alignedAgain(t, r.segments[port], changed, before, after)
}

// The EMSS before the change and after it.
const before, after = 1448, 1348

// transfer moves 16 MiB from A to B, and has something change when half of them have been sent. It
// returns A's port, and the bytes that its stream had then.
func (l *link) transfer(t *testing.T, change func()) (port uint16, changed uint64) {
	t.Helper()
	a, b := l.connect(t, false, iwarp.FPDUsDefault, 16<<20)
	a.fill(1)
	half := len(a.buf) / 2
	for at := 0; at < len(a.buf); at += 1 << 20 {
		testrig.Must(t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{a.SGE(at, 1<<20)},
			Remote: b.mr.Remote(at)}))
		if at == half-1<<20 {
			await(t, a.SendCQ(), at>>20) // the last one may be under way
			change()
			changed = a.Stats().SentStream
		}
	}
	receive(b, b.SGE(0, 0))
	testrig.Must(t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
	await(t, a.SendCQ(), (len(a.buf)-half)>>20+1+1)
	await(t, b.RecvCQ(), 1)
	same(a, b)
	port, stats := a.port(), a.Stats()
	closeBoth(a, b)
	if stats.EMSS != after {
		t.Errorf("an EMSS of %d, want %d", stats.EMSS, after)
	}
	return port, changed
}

// alignedAgain looks at segments before and after the change of the EMSS, in what was
// written up to an offset and after it, and reports whether they are aligned.
func alignedAgain(t *testing.T, all []segment, changed uint64, before, after int) bool {
	t.Helper()
	back := changed + 2<<20 // what was asked for the EMSS late
	early, late := count{}, count{}
	for _, s := range all {
		switch {
		case s.length > before || s.offset > back && s.length > after:
			t.Fatalf("a segment of %d bytes at %d", s.length, s.offset)
		case s.offset > back:
			late.add(s)
		case s.offset < changed && s.length > after:
			early.add(s)
		}
	}
	t.Logf("an EMSS of %d: %v; of %d: %v", before, early, after, late)
	if early.segments < 1000 || late.segments < 1000 {
		t.Error("too few segments to tell")
	}
	return early.share() >= least && late.share() >= least
}

// A count is of segments.
type count struct{ segments, aligned int }

func (c *count) add(s segment) {
	c.segments++
	if s.begins && s.ends {
		c.aligned++
	}
}

func (c count) share() float64 { return float64(c.aligned) / float64(max(c.segments, 1)) }

func (c count) String() string {
	return fmt.Sprintf("%.3f%% of %d segments aligned", 100*c.share(), c.segments)
}
