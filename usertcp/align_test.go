package usertcp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// bad is what a path does in the tests that want a bad one.
func bad(seed uint64) Path {
	return Path{Seed: seed, Loss: .01, Reorder: .02, Delay: 200 * time.Microsecond, Late: time.Millisecond}
}

// A watched link notes the segments with data that it is given to send, and counts TCP's window probes apart.
type watched struct {
	Link
	mu       sync.Mutex
	iss      uint32
	una      int // bytes of the stream that the peer has acknowledged
	segments []sent
	probes   int
}

type sent struct{ from, to int } // bytes of the stream

// Receive notes what is acknowledged before TCP learns of it.
func (w *watched) Receive(deliver func(packet []byte)) error {
	return w.Link.Receive(func(packet []byte) {
		if s, ok := parseSegment(packet); ok && s.has(header.TCPFlagAck) && !s.has(header.TCPFlagRst) {
			w.mu.Lock()
			w.una = max(w.una, int(int32(s.ack-w.iss-1)))
			w.mu.Unlock()
		}
		deliver(packet)
	})
}

func (w *watched) Send(packet []byte) {
	w.Link.Send(packet)
	s, ok := parseSegment(packet)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.has(header.TCPFlagSyn) {
		w.iss = s.seq
	}
	from, n := int(int32(s.seq-w.iss-1)), len(s.payload) // a probe before the first byte is at the SYN, -1
	switch {
	case n == 0:
	case n == 1 && s.payload[0] == 0 && from < w.una:
		w.probes++
	default:
		w.segments = append(w.segments, sent{from, from + n})
	}
}

// watch has a link of a stack's noted.
func watch(t *testing.T, cfg Config, ab, ba Path) (a, b *Stack, w *watched) {
	t.Helper()
	cfg.MTU = 1500
	one, other := Pipe(cfg.MTU, ab, ba)
	w = &watched{Link: one}
	a, err := pairEnd(cfg, w, "192.0.2.1")
	must(t, err)
	b, err = pairEnd(cfg, other, "192.0.2.2")
	must(t, err)
	t.Cleanup(func() {
		must(t, a.Close())
		must(t, b.Close())
	})
	return a, b, w
}

// TestAligned holds that each segment begins with a slice of WriteFPDUs and ends with one, also when it is sent again,
// and that all arrive: with losses, segments out of order, and send buffers that are full. The peer's window always has
// room for all of it: where it has none for a segment, TCP cuts one. A window probe is not counted: it has a byte
// that the peer has acknowledged before, and nothing of an FPDU. TCP sends one with cubic, when it has been in a jam:
// see unjam.
func TestAligned(t *testing.T) {
	full := func(emss int, _ *rand.Rand) int { return emss }
	small := func(_ int, r *rand.Rand) int { return 8 + r.IntN(400) }
	any := func(emss int, r *rand.Rand) int { return 8 + r.IntN(emss-7) }
	for _, c := range []struct {
		name  string
		cfg   Config
		path  Path
		size  func(emss int, r *rand.Rand) int
		batch int
	}{
		{"full segments", Config{}, Path{}, full, 1},
		{"full segments, many at once", Config{}, Path{}, full, 45},
		{"full segments, small buffer", Config{SendBuffer: 1}, Path{}, full, 7},
		{"small ones", Config{}, Path{}, small, 10},
		{"any size", Config{SendBuffer: 1}, Path{}, any, 10},
		{"full segments, bad path", Config{}, bad(1), full, 45},
		{"small ones, bad path", Config{}, bad(2), small, 10},
		{"any size, bad path, small buffer", Config{SendBuffer: 1}, bad(3), any, 10},
		{"any size, bad path, duplicates, cubic", Config{CongestionControl: "cubic"},
			Path{Seed: 4, Loss: .01, Reorder: .02, Duplicate: .02, Delay: time.Millisecond / 5}, any, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// a bad path may lose what is sent again, over and over
			c.cfg.ReceiveBuffer, c.cfg.MaxRTO = 8<<20, time.Second
			a, b, w := watch(t, c.cfg, c.path, Path{Delay: c.path.Delay})
			out, in := connect(t, a, b, "192.0.2.2:7174")
			r := rand.New(rand.NewPCG(1, 2))
			bounds := map[int]bool{0: true}
			var all []byte
			got := make(chan []byte, 1)
			go func() {
				b, err := io.ReadAll(in)
				if err != nil {
					t.Error(err)
				}
				got <- b
			}()
			for len(all) < 2<<20 {
				var fpdus [][]byte
				for range c.batch {
					p := make([]byte, c.size(out.EMSS(), r))
					for i := range p {
						p[i] = byte(r.Uint32())
					}
					all = append(all, p...)
					bounds[len(all)] = true
					fpdus = append(fpdus, p)
				}
				writeAll(t, out, fpdus)
			}
			must(t, out.CloseWrite())
			if !bytes.Equal(<-got, all) {
				t.Error("what arrived is not what was sent")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			cut := 0
			for _, s := range w.segments {
				if !bounds[s.from] || !bounds[s.to] {
					cut++
				}
			}
			if cut > 0 || len(w.segments) == 0 {
				t.Errorf("%d of %d segments are not aligned", cut, len(w.segments))
			}
		})
	}
}

// writeAll writes all FPDUs, and holds that whole ones are taken.
func writeAll(t *testing.T, c *Conn, fpdus [][]byte) {
	t.Helper()
	for len(fpdus) > 0 {
		n, err := c.WriteFPDUs(fpdus)
		must(t, err)
		if n == 0 {
			t.Fatal("nothing was taken")
		}
		for n > 0 {
			if n < len(fpdus[0]) {
				t.Fatalf("%d bytes of a slice of %d were taken", n, len(fpdus[0]))
			}
			n -= len(fpdus[0])
			fpdus = fpdus[1:]
		}
	}
}

// TestEMSS holds that the EMSS is known from the SYNs, and is what a full segment has: not a byte less.
func TestEMSS(t *testing.T) {
	for _, c := range []struct {
		address   string
		mtu, emss int
	}{
		{"192.0.2.2:1", 1500, 1500 - 20 - 20 - 40},
		{"192.0.2.2:1", 9000, 9000 - 20 - 20 - 40},
		{"[2001:db8::2]:1", 1500, 1500 - 40 - 20 - 40},
	} {
		a, b := stacks(t, Config{MTU: c.mtu}, Path{}, Path{})
		out, in := connect(t, a, b, c.address)
		if out.EMSS() != c.emss || in.EMSS() != c.emss {
			t.Errorf("%s, MTU %d: EMSS %d and %d at first, want %d", c.address, c.mtu, out.EMSS(), in.EMSS(), c.emss)
		}
		for range 3 { // TCP's own state is asked with each segment
			writeAll(t, out, [][]byte{make([]byte, out.EMSS())})
			writeAll(t, in, [][]byte{make([]byte, in.EMSS())})
			_, err := io.ReadFull(out, make([]byte, in.EMSS()))
			must(t, err)
			_, err = io.ReadFull(in, make([]byte, out.EMSS()))
			must(t, err)
		}
		if out.EMSS() != c.emss || in.EMSS() != c.emss {
			t.Errorf("%s, MTU %d: EMSS %d and %d later, want %d", c.address, c.mtu, out.EMSS(), in.EMSS(), c.emss)
		}
	}
}
