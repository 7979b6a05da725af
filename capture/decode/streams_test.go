package decode_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestSplits cuts the same bytes into segments of any size: the FPDUs are the same.
func TestSplits(t *testing.T) {
	for _, markers := range []bool{false, true} {
		whole := run(t, busy(t, 1440, markers))
		if len(whole.fpdus) != 65 || len(whole.findings) != 0 || whole.reads != 16 {
			t.Fatalf("%d FPDUs, %d Reads, %q", len(whole.fpdus), whole.reads, whole.texts)
		}
		for mss := 1; mss < 1440; mss += 1 + mss/3 {
			r := run(t, busy(t, mss, markers))
			if !slices.Equal(r.fpdus, whole.fpdus) || !slices.Equal(r.startups, whole.startups) ||
				len(r.without("note fpdu-over-segments")) != 0 || r.reads != whole.reads {
				t.Errorf("markers %t, segments of %d: %d FPDUs, %d Reads, %q",
					markers, mss, len(r.fpdus), r.reads, r.texts)
			}
		}
	}
}

// busy returns a capture of 65 FPDUs.
func busy(tb testing.TB, mss int, markers bool) []byte {
	s := newScript(tb, mss)
	s.startup(markers)
	for i := range 8 {
		s.message(fw, "hello")
		s.message(bw, strings.Repeat("hello yourself", i*20))
		s.write(fw, 7, 4096, make([]byte, 170*i))
		s.write(bw, 8, 4096, make([]byte, 300))
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, SinkTO: 16, Size: 300, SrcSTag: 7, SrcTO: 4096})
		s.respond(bw, 9, 16, make([]byte, 300))
		s.read(bw, rdmap.ReadRequest{SinkSTag: 9, Size: 3, SrcSTag: 7})
		s.respond(fw, 9, 0, make([]byte, 3))
	}
	return s.close()
}

// passed decodes the packets of a capture as pass hands them on.
func passed(tb testing.TB, file []byte, pass func(p *capture.Packet, on func(*capture.Packet))) *record {
	tb.Helper()
	r := new(record)
	in, err := capture.Open(bytes.NewReader(file))
	testrig.Must(tb, err)
	tracker := capture.NewTracker(capture.Config{}, decode.New(decode.Config{}, r))
	for p, err := in.Next(); err == nil; p, err = in.Next() {
		pass(p, tracker.Packet)
	}
	tracker.Flush()
	r.check(tb)
	return r
}

// lossy decodes a capture that lacks some of its packets.
func lossy(tb testing.TB, file []byte, lost func(p *capture.Packet) bool) *record {
	tb.Helper()
	return passed(tb, file, func(p *capture.Packet, on func(*capture.Packet)) {
		if !lost(p) {
			on(p)
		}
	})
}

// TestLoss leaves packets out of captures without a fault, and finds nothing but that.
func TestLoss(t *testing.T) {
	files := [][]byte{busy(t, 1440, false), busy(t, 1440, true), busy(t, 100, false), busy(t, 100, true)}
	rapid.Check(t, func(rt *rapid.T) {
		file := files[rapid.IntRange(0, len(files)-1).Draw(rt, "file")]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		share := rapid.IntRange(2, 40).Draw(rt, "share")
		r := lossy(t, file, func(*capture.Packet) bool { return rng.IntN(share) == 0 })
		if s := r.serious(); len(s) > 0 || len(r.untold) > 0 {
			rt.Fatalf("%q %q; nothing is told of %q", s, r.startups, r.untold)
		}
	})
}

// TestMidstream begins captures in the middle.
func TestMidstream(t *testing.T) {
	for _, markers := range []bool{false, true} {
		file := busy(t, 1440, markers)
		for from := uint64(6); from < 60; from++ {
			r := lossy(t, file, func(p *capture.Packet) bool { return p.Number < from })
			if s := r.serious(); len(s) > 0 {
				t.Fatalf("from packet %d: %q", from, r.texts)
			}
			if len(r.conns) != 1 || !r.conns[0].Midstream || !r.conns[0].CRC {
				t.Fatalf("from packet %d: %d connections", from, len(r.conns))
			}
			if markers && from < 20 && !r.conns[0].Markers[fw] {
				t.Errorf("from packet %d: no markers found", from)
			}
		}
	}
}

// TestMidstreamLarge begins captures of large FPDUs, which take many segments each, in
// the middle.
func TestMidstreamLarge(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, payload := range []int{1300, 8000, 60000} {
			file := bulk(t, markers, payload, 1<<20)
			for _, from := range []uint64{6, 20, 90} {
				r := lossy(t, file, func(p *capture.Packet) bool { return p.Number < from })
				if len(r.serious()) > 0 || len(r.conns) != 1 || len(r.fpdus) < (1<<20-90*1440)/payload-4 ||
					r.conns[0].Markers[fw] != markers {
					t.Errorf("markers %t, FPDUs of %d from packet %d: %d connections, %d FPDUs, %q",
						markers, payload, from, len(r.conns), len(r.fpdus), r.texts)
				}
			}
		}
	}
}

// strangers are the first bytes of connections that are not iWARP.
func strangers() map[string][2][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	doc := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>The key is MPA ID Req Frame, and MPA ident frame, and MPA ID Rep Frame." + strings.Repeat(" MPA ID Req Frame", 2000)
	return map[string][2][]byte{
		"random": {noise(600000), noise(600000)},
		"zeros":  {make([]byte, 600000), make([]byte, 600000)},
		"ones":   {bytes.Repeat([]byte{0xff}, 100000), bytes.Repeat([]byte{0, 1}, 100000)},
		"HTTP":   {[]byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"), []byte(doc)},
		"TLS": {append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, noise(500)...),
			append([]byte{0x16, 3, 3, 0, 0x7a, 2, 0, 0, 0x76, 3, 3}, noise(200000)...)},
		"counts": {countUp(200000), countUp(200000)},
	}
}

func countUp(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i >> (i % 4 * 8))
	}
	return b
}

// TestStrangers reads connections that are not iWARP, from their beginning and from the
// middle on.
func TestStrangers(t *testing.T) {
	begins := []uint64{1, 7}
	if testrig.Everything() {
		begins = []uint64{1, 5, 6, 7}
	}
	for name, ends := range strangers() {
		s := newScript(t, 0)
		for n := 0; n < max(len(ends[0]), len(ends[1])); n += 5000 {
			for d, b := range ends {
				s.send(capture.Dir(d), b[min(n, len(b)):min(n+5000, len(b))])
			}
		}
		file := s.close()
		for _, from := range begins {
			r := lossy(t, file, func(p *capture.Packet) bool { return p.Number < from || from == 7 && p.Number == 9 })
			if len(r.conns) > 0 {
				t.Errorf("%s from packet %d: taken for iWARP: %q %q", name, from, r.startups, r.texts)
			}
		}
	}
}

// TestSnap reads a capture of which each packet is cut.
func TestSnap(t *testing.T) {
	r := lossy(t, busy(t, 1440, false), func(p *capture.Packet) bool {
		p.OrigLen = max(p.OrigLen, len(p.Data))
		p.Data = p.Data[:min(len(p.Data), 200)]
		return false
	})
	if s := r.serious(); len(s) > 0 || len(r.fpdus) < 30 {
		t.Errorf("%d FPDUs, %q", len(r.fpdus), r.texts)
	}
}

// TestRetransmission has bytes that differ when they are sent again, and others that
// do not.
func TestRetransmission(t *testing.T) {
	for _, differs := range []bool{false, true} {
		r := passed(t, busy(t, 1440, false), func(p *capture.Packet, on func(*capture.Packet)) {
			on(p)
			if p.Number > 10 && p.Number%7 == 0 {
				if differs {
					p.Data[len(p.Data)-1] ^= 1
				}
				on(p)
			}
		})
		if (len(r.findings) > 0) != differs || differs &&
			r.findings[0] != "warning retransmission-differs" || len(r.fpdus) != 65 {
			t.Errorf("%d FPDUs, %q", len(r.fpdus), r.texts)
		}
	}
}

// TestAlignment tells aligned segments from others, and what a receiver has to hold.
func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		mss              int
		markers          bool
		aligned          bool
		least, most, mpa int
	}{{1440, false, true, 0, 0, 0}, {700, false, false, 500, 1100, 1100}} {
		s := newScript(t, c.mss)
		s.startup(c.markers)
		for range 20 {
			s.write(fw, 7, 0, make([]byte, 1000))
		}
		r := run(t, s.close())
		h := r.conns[0].Halves[fw]
		if aligned := h.Aligned == h.Segments; aligned != c.aligned || h.Memory.TCP < c.least ||
			h.Memory.TCP > c.most || h.Memory.MPA > c.mpa || h.Memory.Aligned != h.LargestSegment {
			t.Errorf("segments of %d: %d of %d aligned, memory %+v", c.mss, h.Aligned, h.Segments, h.Memory)
		}
	}
}

// TestReorder holds back a segment, and has a receiver find the FPDUs after the hole by
// their markers.
func TestReorder(t *testing.T) {
	for _, markers := range []bool{false, true} {
		s := newScript(t, 1440)
		s.startup(markers)
		for range 40 {
			s.write(fw, 7, 0, make([]byte, 1000))
		}
		var late capture.Packet
		r := passed(t, s.close(), func(p *capture.Packet, on func(*capture.Packet)) {
			if p.Number == 12 {
				late = *p
				late.Data = bytes.Clone(p.Data)
				return
			}
			on(p)
			if p.Number == 32 {
				on(&late)
			}
		})
		m := r.conns[0].Halves[fw].Memory
		if len(r.serious()) > 0 || m.TCP < 15*1000 || (m.MPA < m.TCP/4) != markers || m.Located > 1100 {
			t.Errorf("markers %t: %+v, %q", markers, m, r.texts)
		}
	}
}

// TestDistribution compares percentiles with those of the values themselves: of few different
// ones they are exact.
func TestDistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]uint64{63, 64, 1 << 40}).Draw(t, "most")
		values := rapid.SliceOfN(rapid.Uint64Range(0, most), 1, 200).Draw(t, "values")
		if rapid.Bool().Draw(t, "all of the small ones") {
			for v := range min(most, 64) + 1 {
				values = append(values, v)
			}
		}
		var d decode.Distribution
		for _, v := range values {
			d.Add(v)
		}
		slices.Sort(values)
		if exact := len(slices.Compact(slices.Clone(values))) <= 64; d.Exact() != exact {
			t.Fatalf("percentiles are exact: %v", !exact)
		}
		for _, p := range []float64{0, 1, 50, 99, 100} {
			want := values[max(0, (int(p*float64(len(values)))+99)/100-1)]
			if got := d.Percentile(p); got < want || got > want+want/8+1 || d.Exact() && got != want {
				t.Fatalf("%v%% is %d, want %d", p, got, want)
			}
		}
		if d.Min != values[0] || d.Max != values[len(values)-1] || d.Count != uint64(len(values)) {
			t.Fatalf("%+v", d)
		}
	})
}

// TestMedianRounded has FPDUs of few sizes, and of many: it is said if the median is rounded up.
func TestMedianRounded(t *testing.T) {
	for n, want := range map[int]string{62: "min 20, median 1124, max 1248", 63: "min 20, median 1124, max 1252",
		64: "min 20, median at most 1151, max 1256"} {
		s := newScript(t, 0)
		s.startup(false)
		for i := range n {
			s.write(fw, 1, 0, make([]byte, 984+4*i))
		}
		rows := run(t, s.close()).conns[0].Summary()
		if !slices.ContainsFunc(rows, func(row [2]string) bool { return row[1] == want }) {
			t.Errorf("%d sizes: %q, want %q", n+1, rows, want)
		}
	}
}

// FuzzDecode spoils a capture at some places: whatever comes of it, nothing panics, and
// no more is told of than there is.
func FuzzDecode(f *testing.F) {
	nfs := spoken(f, 20049, "rpc-call-open", "rpc-reply-grace", "rpc-call-write", "rpc-reply-stale", "rpc-call-dir", "rpc-reply-long")
	smb := spoken(f, 5445, "smbd-req", "smbd-resp", "smb-read-req", "smb-read-resp", "smb-write-req", "smb-write-err")
	for _, file := range [][]byte{busy(f, 1440, false), busy(f, 300, true), keyed(f), nfs, smb} {
		f.Add(file, uint64(0), uint16(0))
		f.Add(file, uint64(7), uint16(20))
	}
	f.Fuzz(func(t *testing.T, file []byte, seed uint64, spoil uint16) {
		file = bytes.Clone(file)
		rng := rand.New(rand.NewPCG(seed, 0))
		for range min(int(spoil), 64) {
			if len(file) > 200 {
				file[200+rng.IntN(len(file)-200)] = byte(rng.Uint32())
			}
		}
		r := new(record)
		totals, _ := decode.Run(bytes.NewReader(file), decode.Config{}, r)
		if totals.IWARP != uint64(len(r.conns)) || totals.Bytes > uint64(len(file)) {
			t.Errorf("%+v of %d bytes", totals, len(file))
		}
		if len(r.untold) > 0 {
			t.Errorf("nothing is told of bytes %q", r.untold)
		}
		for _, print := range printers(new(bytes.Buffer)) {
			_, _ = decode.Run(bytes.NewReader(file), decode.Config{}, print)
		}
	})
}

// printers are all consumers that print.
func printers(to *bytes.Buffer) []decode.Consumer {
	return []decode.Consumer{
		decode.NewText(to, decode.TextConfig{FPDUs: true, Hex: true}),
		decode.NewJSON(to, decode.JSONConfig{FPDUs: true, Bytes: true}),
	}
}

// keyed returns a capture with Start Keys, after messages and streaming data.
func keyed(tb testing.TB) []byte {
	s := newScript(tb, 0)
	for i, f := range []string{"hello", "hello", "\x00\x03abc", "\x00\x02ok", startKey, startKey} {
		s.send(capture.Dir(i%2), []byte(f))
	}
	s.operate(true, true)
	exchange(s)
	return s.close()
}
