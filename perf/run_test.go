package perf_test

import (
	"cmp"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/perf"
)

// quick are options for a run of every operation that takes no time to speak
// of: sizes below, at and beyond the sequence number's length.
func quick(sizes ...int) perf.Options {
	return perf.Options{Sizes: sizes, Duration: time.Millisecond}
}

// largest is a size beyond the socket buffers' chunks, and the depth at which a run of it
// takes no time to speak of: the depth that is chosen without one fills memory for most of it.
const largest, depthOfLargest = 100_000, 16

// brief is once, and leaves out plain TCP too: what is tested is in the lanes of iwarp.
func brief(opts perf.Options, op perf.Op) perf.Options {
	opts.NoBaseline = !testrig.Everything()
	return once(opts, op)
}

// once has all operations take part only if everything is to be tried, and else one: what
// is tested does not depend on the operation.
func once(opts perf.Options, op perf.Op) perf.Options {
	if !testrig.Everything() {
		opts.Ops = []perf.Op{op}
	}
	return opts
}

// extensions are options for a run of the operations of RFC 7306.
func extensions(opts perf.Options) perf.Options {
	opts.Ops, opts.Duration, opts.NoBaseline = []perf.Op{perf.WriteImm, perf.Atomic},
		time.Millisecond, !testrig.Everything()
	return opts
}

// wantResults is how many results there are to be: an Atomic Operation has one size.
func wantResults(o perf.Options) (n int) {
	for _, op := range o.Ops {
		if op == perf.Atomic {
			n++
		} else {
			n += len(o.Sizes)
		}
	}
	return n
}

func TestRunMovesAndVerifies(t *testing.T) {
	for _, test := range []struct {
		name string
		opts perf.Options
	}{
		{"odd sizes", quick(1, 7, 8, 9, 4097)},
		{"larger than a ring's usual share", brief(perf.Options{Sizes: []int{1100000},
			Duration: time.Millisecond}, perf.Write)},
		{"depth two", brief(perf.Options{Sizes: []int{64}, Depth: 2, RXDepth: 2,
			Duration: time.Millisecond}, perf.Send)},
		{"depth one", once(perf.Options{Sizes: []int{64, 4096}, Depth: 1, NoBaseline: !testrig.Everything(),
			Duration: time.Millisecond}, perf.Write)},
		{"depth one, Sends in both directions", brief(perf.Options{Sizes: []int{64}, Depth: 1, Bidirectional: true,
			Duration: time.Millisecond}, perf.Send)},
		{"depth one, Reads", brief(perf.Options{Sizes: []int{64}, Depth: 1, Duration: time.Millisecond}, perf.Read)},
		{"many receives for few messages under way",
			brief(perf.Options{Sizes: []int{64}, Depth: 2, RXDepth: 300, Duration: time.Millisecond}, perf.Send)},
		{"depth that credits do not divide", brief(perf.Options{Sizes: []int{1000}, Depth: 7, RXDepth: 7,
			Duration: time.Millisecond}, perf.Send)},
		{"many connections", brief(perf.Options{Sizes: []int{100}, QPs: 4, Duration: time.Millisecond}, perf.Read)},
		{"without TCP", once(perf.Options{Sizes: []int{64}, NoBaseline: true, Duration: time.Millisecond}, perf.Write)},
		{"the depth that is chosen", once(quick(largest), perf.Write)},
		{"both directions", perf.Options{Sizes: []int{1, 64, largest}, Depth: depthOfLargest, Bidirectional: true,
			QPs: 2, Duration: time.Millisecond}},
		{"both directions, depth two", brief(perf.Options{Sizes: []int{64}, Bidirectional: true, Depth: 2, RXDepth: 2,
			PostList: 3, Duration: time.Millisecond}, perf.Send)},
		{"lists of posts", brief(perf.Options{Sizes: []int{64, 300}, PostList: 7, CQMod: 5,
			Duration: time.Millisecond}, perf.Write)},
		{"lists longer than the depth", brief(perf.Options{Sizes: []int{64}, Depth: 4, RXDepth: 4, PostList: 100,
			CQMod: 100, Duration: time.Millisecond}, perf.Send)},
		{"inline", brief(perf.Options{Sizes: []int{64, 1000, 1001}, Inline: 1000,
			Duration: time.Millisecond}, perf.Send)},
		{"polling", once(perf.Options{Sizes: []int{64, 9000}, Poll: true, Duration: time.Millisecond}, perf.Read)},
		{"a number of messages", once(perf.Options{Sizes: []int{64}, Iters: 20,
			Duration: time.Millisecond}, perf.Send)},
		{"markers without CRC", brief(perf.Options{Sizes: []int{64, largest}, Depth: depthOfLargest, Markers: true,
			NoCRC: true, Duration: time.Millisecond}, perf.Write)},
		{"RFC 7306", extensions(perf.Options{Sizes: []int{1, 64, 4097}})},
		{"RFC 7306 in both directions", extensions(perf.Options{Sizes: []int{64}, Bidirectional: true, QPs: 2})},
		{"RFC 7306, a few large messages", extensions(perf.Options{Sizes: []int{1100000}, PostList: 3})},
		{"RFC 7306, depth two and polling", extensions(perf.Options{Sizes: []int{300}, Depth: 2, RXDepth: 2,
			Poll: true, Inline: 300})},
		{"RFC 7306 over SCTP", extensions(perf.Options{Sizes: []int{64}, Network: "sctp"})},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // a close waits for what may still come
			report, err := perf.Run(t.Context(), test.opts, perf.Observer{})
			testrig.Must(t, err)
			if want := wantResults(report.Options); len(report.Results) != want {
				t.Fatalf("%d results, want %d", len(report.Results), want)
			}
			for _, r := range report.Results {
				wantSane(t, r, !test.opts.NoBaseline)
			}
		})
	}
}

// TestRunStartups measures over connections of every dialect and kind of RNIC, and of
// every preset.
func TestRunStartups(t *testing.T) {
	runs := map[string]perf.Options{
		"kind rdmac":          {Kind: mpa.KindRDMAC},
		"kind non-permissive": {Kind: mpa.KindNonPermissive},
	}
	for _, d := range mpa.Dialects() {
		runs["dialect "+d.String()] = perf.Options{Dialect: d}
	}
	for _, p := range iwarp.Presets() {
		runs["peer "+p.Name] = perf.Options{Peer: p.Name}
	}
	for name, opts := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Sizes, opts.Duration, opts.NoBaseline = []int{64}, time.Millisecond, true
			report, err := perf.Run(t.Context(), once(opts, perf.Read), perf.Observer{})
			testrig.Must(t, err)
			want := opts.Dialect
			switch {
			case opts.Kind == mpa.KindRDMAC:
				want = mpa.DialectRevision0
			case opts.Peer == "freebsd", opts.Peer == "windows-v1":
				want = mpa.DialectRFC5044
			case want == 0:
				want = mpa.DialectRFC6581
			}
			n := report.Negotiated
			if n.Dialect != want || opts.Peer == "freebsd" && n.ORD != 8 {
				t.Errorf("negotiated %+v, want %v", n, want)
			}
		})
	}
}

// TestRunOverSCTP moves and verifies as much over SCTP, enhanced and not, beside plain TCP.
func TestRunOverSCTP(t *testing.T) {
	for name, opts := range map[string]perf.Options{
		"sizes":       {Sizes: []int{1, 1426, 4097}, Depth: depthOfLargest, NoBaseline: true},
		"connections": {Sizes: []int{largest}, Depth: depthOfLargest, QPs: 4, Ops: []perf.Op{perf.Read}},
		"both directions, inline": {Sizes: []int{64, 9000}, Depth: depthOfLargest, Bidirectional: true,
			Inline: 64, PostList: 3},
		"unenhanced": {Sizes: []int{64}, Dialect: mpa.DialectRFC5044, Ops: []perf.Op{perf.Write}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Network, opts.Duration = "sctp", time.Millisecond
			report, err := perf.Run(t.Context(), opts, perf.Observer{})
			testrig.Must(t, err)
			for _, r := range report.Results {
				wantSane(t, r, !opts.NoBaseline)
				if r.EMSS != 0 || r.MULPDU != 1426 {
					t.Errorf("EMSS %d, MULPDU %d", r.EMSS, r.MULPDU)
				}
			}
			if n := report.Negotiated; n.Network != "sctp" || n.CRC || n.Revision != 0 || n.MULPDU != 1426 {
				t.Errorf("negotiated %+v", n)
			}
		})
	}
}

// TestRunReordered: over a link that changes the order of packets a part of the bytes is placed ahead of its turn, in
// each direction, and everything is verified all the same. Over TCP that takes one that is aware of MPA, and markers.
func TestRunReordered(t *testing.T) {
	for name, c := range map[string]struct {
		opts        perf.Options
		least, most float64
	}{
		"reordered":     {perf.Options{Network: "sctp", Reorder: 20}, 0.02, 0.98},
		"both ways":     {perf.Options{Network: "sctp", Reorder: 10, Bidirectional: true, QPs: 2}, 0.01, 0.98},
		"TCP, aware":    {perf.Options{Network: "usertcp", Reorder: 20, Markers: true}, 0.02, 0.98},
		"no markers":    {perf.Options{Network: "usertcp", Reorder: 20}, 0, 0},
		"TCP, in order": {perf.Options{}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.opts.Sizes, c.opts.Depth, c.opts.Iters, c.opts.Duration, c.opts.NoBaseline = []int{20_000},
				depthOfLargest, 40, time.Millisecond, true
			report, err := perf.Run(t.Context(), c.opts, perf.Observer{})
			testrig.Must(t, err)
			for _, r := range report.Results {
				if r.Ahead < c.least || r.Ahead > c.most {
					t.Errorf("%v: %.3f placed ahead, want %v to %v", r.Op, r.Ahead, c.least, c.most)
				}
			}
		})
	}
}

// TestRunTwo measures latency against a responder of its own, over one connection.
func TestRunTwo(t *testing.T) {
	addr, visits := perf.Responds(t, time.Minute)
	opts := perf.Options{Sizes: []int{64, 4096}, QPs: 2, Duration: time.Millisecond}
	report, err := perf.RunTwo(t.Context(), addr, opts, perf.Observer{})
	testrig.Must(t, err)
	for _, r := range report.Results {
		wantSane(t, r, true)
	}
	if v := <-visits; v.Err != nil || v.Options.QPs != 1 {
		t.Errorf("the responder of latency: %+v", v)
	}
}

// TestRunWithCongestionControl sets it at both ends, and undoes that.
func TestRunWithCongestionControl(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can it be chosen")
	}
	addr, visits := perf.Responds(t, time.Minute)
	system := ""
	for _, cc := range []string{"", "reno", ""} {
		opts := once(quick(64), perf.Send)
		opts.CC = cc
		report, err := perf.Connect(t.Context(), addr, opts, perf.Observer{})
		testrig.Must(t, err)
		<-visits
		n := report.Negotiated
		if system == "" {
			system = n.CC
		}
		if want := cmp.Or(cc, system); n.CC != want || n.CCPeer != want {
			t.Errorf("asked for %q: %q at the initiator and %q at the responder, want %q", cc, n.CC, n.CCPeer, want)
		}
	}
	var refused *perf.PeerError
	opts := quick(64)
	opts.CC = "nonesuch"
	if _, err := perf.Connect(t.Context(), addr, opts, perf.Observer{}); !errors.As(err, &refused) || !refused.Option ||
		!strings.Contains(refused.Text, "this system has") {
		t.Errorf("got %v, want to be told what there is", err)
	}
}

// TestRunWraps has the initiator's QPs, with the control connection, on what Wrap
// returns, and plain TCP not.
func TestRunWraps(t *testing.T) {
	var wrapped []*counted
	opts := perf.Options{Ops: []perf.Op{perf.Send}, Sizes: []int{1000}, QPs: 3, Duration: time.Millisecond}
	_, err := perf.Run(t.Context(), opts, perf.Observer{Wrap: func(c net.Conn) (net.Conn, error) {
		wrapped = append(wrapped, &counted{Conn: c})
		return wrapped[len(wrapped)-1], nil
	}})
	testrig.Must(t, err)
	if len(wrapped) != 1+opts.QPs {
		t.Errorf("wrapped %d connections", len(wrapped))
	}
	for i, c := range wrapped {
		if r, w := c.read.Load(), c.wrote.Load(); i > 0 && w < 1000 || r == 0 {
			t.Errorf("connection %d: read %d bytes, wrote %d", i, r, w)
		}
	}
	broken := errors.New("no tap today")
	_, err = perf.Run(t.Context(), opts, perf.Observer{Wrap: func(net.Conn) (net.Conn, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A counted is a connection whose bytes are counted.
type counted struct {
	net.Conn
	read, wrote atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote.Add(int64(n))
	return n, err
}

// wantSane checks figures for what must be true on any machine.
func wantSane(t *testing.T, r perf.Result, tcp bool) {
	t.Helper()
	if r.MULPDU < 1 || r.EMSS > 0 && r.MULPDU >= r.EMSS {
		t.Errorf("%v %d: EMSS %d, MULPDU %d", r.Op, r.Size, r.EMSS, r.MULPDU)
	}
	figures := []perf.Figures{r.Figures}
	if (r.TCP != nil) != tcp || (r.RatioBW > 0) != tcp || (r.RatioLat > 0) != tcp {
		t.Errorf("%v %d: plain TCP measured: %v; ratios %v, %v", r.Op, r.Size, r.TCP != nil, r.RatioBW, r.RatioLat)
	}
	if tcp {
		figures = append(figures, *r.TCP)
	}
	for _, f := range figures {
		if f.Iterations < 1 || f.LatencyIterations < 1 {
			t.Errorf("%v %d: %+v", r.Op, r.Size, f)
		}
		if f.BWPeak < f.BWAverage || f.BWAverage <= 0 || f.MsgRate <= 0 {
			t.Errorf("%v %d: bandwidth %+v", r.Op, r.Size, f)
		}
		if f.Min <= 0 || f.Min > f.Typical || f.Typical > f.Max*1.001 || f.P99 > f.Max*1.001 || f.P999 > f.Max*1.001 {
			t.Errorf("%v %d: latencies %+v", r.Op, r.Size, f)
		}
		if (f.P99 >= f.Typical) != (f.LatencyIterations >= 300) ||
			(f.P999 > 0 && f.P999 >= f.P99) != (f.LatencyIterations >= 3000) {
			t.Errorf("%v %d: latencies %+v", r.Op, r.Size, f)
		}
	}
}

// What is sent wrong is found where it arrives: by the initiator itself for
// Reads and Atomic Operations, and for Sends and Writes by the responder, which tells.
func TestRunFailsOnOneWrongByte(t *testing.T) {
	for _, op := range append(perf.AllOps(), perf.WriteImm, perf.Atomic) {
		sizes := []int{1, 64, 4096}
		fetches := op == perf.Read || op == perf.Atomic
		if op == perf.Atomic {
			sizes = []int{8}
		}
		for _, size := range sizes {
			opts := perf.Options{Ops: []perf.Op{op}, Sizes: []int{size}, Duration: time.Millisecond, Corrupt: true}
			_, err := perf.Run(t.Context(), opts, perf.Observer{})
			var wrong *perf.CorruptionError
			var told *perf.PeerError
			found := errors.As(err, &wrong) && wrong.Offset == size-1 && wrong.Op == op && wrong.Size == size
			if byResponder := errors.As(err, &told) && told.Corrupt; !found || byResponder == fetches {
				t.Errorf("%v of %d bytes: got %v, want an error about wrong data", op, size, err)
			}
		}
	}
}

func TestObserverSeesTheRun(t *testing.T) {
	var connected int
	var results, early []perf.Result
	var done []float64
	report, err := perf.Run(t.Context(), quick(64, 128), perf.Observer{
		Connected: func(n perf.Negotiated) { connected++ },
		Progress: func(p perf.Progress) {
			done = append(done, p.Done)
			if known := p.Quantity == perf.Bandwidth && p.Round > 0; (p.MsgRate > 0) != known {
				t.Errorf("in round %d of %s there were %v million messages a second", p.Round, p.Quantity, p.MsgRate)
			}
		},
		Result: func(r perf.Result) { results = append(results, r) },
		Bandwidth: func(r perf.Result) {
			early = append(early, r)
			if len(early) != len(results)+1 {
				t.Errorf("bandwidth is told of result %d after %d of them", len(early), len(results))
			}
		},
	})
	testrig.Must(t, err)
	if connected != 1 {
		t.Errorf("connected %d times", connected)
	}
	if diff := gocmp.Diff(report.Results, results); diff != "" {
		t.Errorf("results told one by one differ from the report (-report +told):\n%s", diff)
	}
	for i, r := range early {
		all := results[i]
		if r.Op != all.Op || r.Size != all.Size || r.BWAverage != all.BWAverage || r.TCP.CPU != all.TCP.CPU ||
			r.RatioBW != all.RatioBW || r.LatencyIterations != 0 {
			t.Errorf("of result %d it was told early: %+v, and later: %+v", i, r, all)
		}
	}
	for i := range done {
		if done[i] < 0 || done[i] >= 1 || i > 0 && done[i] < done[i-1] {
			t.Fatalf("progress goes %v", done)
		}
	}
}
