package perf_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// A late connection is one over a long path: what it reads has come so much earlier.
type late struct {
	net.Conn
	delay time.Duration
	came  chan arrival
	rest  []byte
	end   error
	begin sync.Once
}

// An arrival is what has come, and when it is to be read.
type arrival struct {
	b   []byte
	err error
	due time.Time
}

// overLongPath has all that connections receive come later.
func overLongPath(delay time.Duration) func(net.Conn) (net.Conn, error) {
	return func(c net.Conn) (net.Conn, error) {
		return &late{Conn: c, delay: delay, came: make(chan arrival, 1<<10)}, nil
	}
}

// receive takes what comes until there is an end.
func (l *late) receive() {
	for {
		b := make([]byte, 64<<10)
		n, err := l.Conn.Read(b)
		l.came <- arrival{b[:n], err, time.Now().Add(l.delay)}
		if err != nil {
			close(l.came)
			return
		}
	}
}

func (l *late) Read(b []byte) (int, error) {
	l.begin.Do(func() { go l.receive() })
	for len(l.rest) == 0 && l.end == nil {
		a := <-l.came
		time.Sleep(time.Until(a.due))
		l.rest, l.end = a.b, a.err
	}
	if len(l.rest) == 0 {
		return 0, l.end
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// TestRunOverLongPath: over a path with a long round trip there are few slices of bandwidth, which are long beside it,
// and so few are not judged, nor replaced.
func TestRunOverLongPath(t *testing.T) {
	const trip = 5 * time.Millisecond
	addr, _ := perf.Responds(t, time.Minute)
	opts := perf.Options{Ops: []perf.Op{perf.Write}, Sizes: []int{4096},
		Duration: 200 * time.Millisecond, NoBaseline: true}
	report, err := perf.Connect(t.Context(), addr, opts, perf.Observer{Wrap: overLongPath(trip)})
	testrig.Must(t, err)
	r := report.Results[0]
	// 20, if the machine has time
	if r.RoundTrip < float64(trip.Microseconds()) || r.SliceTrips < 5 || r.ShortSlices != (r.SliceTrips < 10) {
		t.Errorf("slices of %.1f round trips of %v us, short: %v", r.SliceTrips, r.RoundTrip, r.ShortSlices)
	}
	if r.BWPairs != 3 || r.BWDropped != 0 || r.Judged() {
		t.Errorf("%+v, judged: %v; want 3 pairs of bandwidth that are not", r.Pairs, r.Judged())
	}
}
