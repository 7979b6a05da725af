package iwarp

import (
	"testing"
	"testing/synctest"
	"time"
)

// A toldStream is a SegmentStream whose peer acknowledges something every 4 s until it falls silent, and tells when it has
// everything.
type toldStream struct {
	SegmentStream
	told   chan struct{}
	began  time.Time
	silent time.Duration // from when on
}

func (s *toldStream) Told() <-chan struct{} { return s.told }
func (s *toldStream) Acknowledged() uint32 {
	return uint32(min(time.Since(s.began), s.silent) / (4 * time.Second))
}

// TestCloseUntilTold: a Close waits for a peer to have our end as long as it acknowledges something within CloseTimeout, and for
// CloseLimit at most; one that is hurried waits for nothing.
func TestCloseUntilTold(t *testing.T) {
	never := 10 * time.Hour
	for name, c := range map[string]struct{ silent, told, hurried, limit, least, most time.Duration }{
		"told at last":     {never, 42 * time.Second, never, time.Minute, 42 * time.Second, 42 * time.Second},
		"silent from 20 s": {20 * time.Second, never, never, time.Minute, 25 * time.Second, 30 * time.Second},
		"silent":           {0, never, never, time.Minute, 5 * time.Second, 5 * time.Second},
		"endless":          {never, never, never, time.Minute, time.Minute, 65 * time.Second},
		"without a limit":  {never, time.Hour, never, -1, time.Hour, time.Hour},
		"hurried":          {never, never, 7 * time.Second, time.Minute, 7 * time.Second, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &toldStream{told: make(chan struct{}), began: time.Now(), silent: c.silent}
			qp := &QP{cfg: QPConfig{CloseTimeout: 5 * time.Second, CloseLimit: c.limit}}
			hurried := qp.farewell.begin()
			told, hurry := time.AfterFunc(c.told, func() { close(s.told) }), time.AfterFunc(c.hurried, qp.farewell.hurry)
			defer func() { told.Stop(); hurry.Stop() }()
			qp.awaitTold(&segmentLink{SegmentStream: s}, hurried)
			if took := time.Since(s.began); took < c.least || took > c.most {
				t.Errorf("%s: after %v, want %v to %v", name, took, c.least, c.most)
			}
		})
	}
}
