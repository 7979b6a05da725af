package iwarp_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// nudged runs an Initiator against a peer that the test plays, and returns the
// times at which FPDUs came from it within ten minutes. The peer answers the
// n-th with one of its own.
func nudged(t *testing.T, cfg iwarp.QPConfig, answer int) (at []time.Duration, s iwarp.Stats) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe(t)
		p := newPeer(t, a)
		d := iwarp.Dialer{QP: cfg}
		started := make(chan *iwarp.QP, 1)
		go func() {
			qp, err := d.Initiate(t.Context(), b, nil)
			should(t, err)
			started <- qp
		}()
		p.wantFrame(mpa.KeyRequest)
		p.send(frame(reply(2)))
		qp := <-started
		began := time.Now()
		for len(at) < 100 {
			if s, err := p.link.NextSegment(began.Add(10 * time.Minute)); err != nil || len(s.Payload) > 0 {
				break
			}
			if at = append(at, time.Since(began)); len(at) == answer {
				p.send(p.write(1, 0, nil))
			}
		}
		s = qp.Stats()
		_ = qp.Abort()
	})
	return at, s
}

// TestNudge has an Initiator hear nothing after its first FPDU: it sends
// zero-length Writes, at growing distances, and gives up after a while. A peer
// that says something is left alone.
func TestNudge(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		nudge  time.Duration
		answer int
		want   []time.Duration
	}{
		{"silent", 0, 0, []time.Duration{0, 10 * ms, 50 * ms, 210 * ms, 850 * ms, 3410 * ms, 13650 * ms}},
		{"silent, other distances", 100 * ms, 0, []time.Duration{0, 100 * ms, 500 * ms, 2100 * ms, 8500 * ms, 34100 * ms, 136500 * ms}},
		{"answers at once", 0, 1, []time.Duration{0}},
		{"answers the second nudge", 0, 3, []time.Duration{0, 10 * ms, 50 * ms}},
		{"switched off", -1, 0, []time.Duration{0}},
	} {
		at, s := nudged(t, iwarp.QPConfig{Nudge: c.nudge}, c.answer)
		if !slices.Equal(at, c.want) {
			t.Errorf("%s: FPDUs at %v, want %v", c.name, at, c.want)
		}
		if s.Nudges != uint64(len(c.want)-1) || s.Sent[rdmap.OpWrite].Messages != uint64(len(c.want)) || s.Sent[rdmap.OpWrite].Octets != 0 {
			t.Errorf("%s: counted %+v", c.name, s)
		}
	}
}

// TestNudgeIsNoProgress: an Initiator whose peer says nothing ends the connection in time, however often it has nudged
// that peer. What its consumer sends is another matter.
//
// Proves Z04.
func TestNudgeIsNoProgress(t *testing.T) {
	const idle = 700 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		ini, res := setup{pipe: true, Dialer: iwarp.Dialer{QP: iwarp.QPConfig{IdleTimeout: idle}}}.connect(t)
		synctest.Wait()
		time.Sleep(idle - 1) // of virtual time
		must(t, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true}))
		wantEndAfter(t, ini.QP, idle, iwarp.ErrIdle)
		if n := ini.Stats().Nudges; n < 4 {
			t.Errorf("%d nudges", n)
		}
		_ = res.Close()
	})
}
