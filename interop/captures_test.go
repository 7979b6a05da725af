package interop_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

var update = flag.Bool("update", false, "rewrite the golden files beside the captures")

// eachCapture runs a subtest for every stored capture.
func eachCapture(t *testing.T, f func(t *testing.T, path string)) {
	t.Helper()
	for _, path := range testrig.Captures(t, "testdata/captures") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".pcap"), func(t *testing.T) { f(t, path) })
	}
}

// TestCaptures decodes what siw and iwarp have sent, and compares it line by
// line with what is known to be in it. CRCs are siw's own: the decoder
// checks them wherever either end has asked for them.
//
// Proves F01, F04, F05, F11, F12, F14, R01, R02, Q01, Q04, E01, D09, D10, P04,
// P06, P10
func TestCaptures(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) {
		var got strings.Builder
		for _, c := range iwarpIn(t, path) {
			fmt.Fprintf(&got, "%v\n%s\n", c.tcp, strings.Join(lines(c), "\n"))
		}
		testrig.Golden(t, strings.TrimSuffix(path, ".pcap")+".golden", []byte(got.String()), *update)
	})
}

// lines describes the events of a connection with their places, and then what the
// decoder remarks on.
func lines(c *connection) (text []string) {
	for _, e := range c.events {
		text = append(text, fmt.Sprintf("%6d %v", e.offset, e))
	}
	for _, f := range c.findings {
		text = append(text, fmt.Sprintf("%6d %v %v %s", f.Offset, f.Dir, f.Severity, f.Name))
	}
	return text
}

// linesOfStream leaves out what is found of the segments alone.
func linesOfStream(c *connection) []string {
	return slices.DeleteFunc(lines(c), func(line string) bool { return strings.HasSuffix(line, " fpdu-over-segments") })
}

// TestCapturesCut decodes the same bytes in other segments than TCP had cut: how
// segments fall makes no difference to what is found.
//
// Proves R02, R04
func TestCapturesCut(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) {
		for _, c := range iwarpIn(t, path) {
			for _, n := range []int{1, 7, capture.MaxMSS} {
				if n == 1 && len(c.events) > 50 && !testrig.Everything() {
					continue // hundreds of thousands of segments
				}
				wantSame(t, linesOfStream(c), linesOfStream(rewrite(t, c.pieces(), n)))
			}
			// With each direction in one run, the two no longer take turns.
			merged := rewrite(t, slices.Concat(c.pieces()[:2], merge(c.pieces()[2:])), capture.MaxMSS)
			for _, dir := range []capture.Dir{fromInitiator, fromResponder} {
				wantSame(t, texts(only(c.events, dir)), texts(only(merged.events, dir)))
			}
		}
	})
}

func wantSame(t testing.TB, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("cut otherwise, the bytes give (-want +got):\n%s", d)
	}
}

func texts(events []event) (all []string) {
	for _, e := range events {
		all = append(all, e.String())
	}
	return all
}

// A piece is bytes that one end sends.
type piece struct {
	dir   capture.Dir
	bytes []byte
}

// pieces returns the bytes of all events, each on its own.
func (c *connection) pieces() (all []piece) {
	for _, e := range c.events {
		all = append(all, piece{e.dir, e.bytes})
	}
	return all
}

// merge returns each direction's bytes in one piece.
func merge(pieces []piece) []piece {
	whole := []piece{{dir: fromInitiator}, {dir: fromResponder}}
	for _, p := range pieces {
		whole[p.dir].bytes = append(whole[p.dir].bytes, p.bytes...)
	}
	return whole
}

// rewrite makes a capture of these pieces, in segments of at most n bytes, and
// decodes it.
func rewrite(t testing.TB, pieces []piece, n int) *connection {
	t.Helper()
	all := read(t, bytes.NewReader(written(t, pieces, n)))
	if len(all) != 1 || all[0].iwarp == nil {
		t.Fatalf("%d connections", len(all))
	}
	return all[0]
}

// The ends of a connection that is made up.
var (
	writtenClient = netip.MustParseAddrPort("192.0.2.1:49152")
	writtenServer = netip.MustParseAddrPort("192.0.2.2:7174")
)

// written returns the capture of a connection in which the two ends send these pieces,
// each in segments of at most n bytes.
func written(t testing.TB, pieces []piece, n int) []byte {
	t.Helper()
	var file bytes.Buffer
	now := time.Unix(0, 0)
	tick := func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
	w, err := capture.NewWriter(&file, capture.WriterConfig{MSS: n, Ethernet: true})
	testrig.Must(t, err)
	f, err := w.Open(writtenClient, writtenServer, tick())
	testrig.Must(t, err)
	for _, p := range pieces {
		testrig.Must(t, f.Send(p.dir, tick(), p.bytes))
	}
	testrig.Must(t, f.Close(fromInitiator, tick()))
	testrig.Must(t, f.Close(fromResponder, tick()))
	testrig.Must(t, w.Flush())
	return file.Bytes()
}

// TestCapturesDamaged flips a bit in each FPDU with a CRC, in the last byte before
// that: it is reported as damaged there, by its CRC, and all others are as they were. Of
// a connection with many FPDUs these are some, without IWARP_ALL.
//
// Proves F04, R01
func TestCapturesDamaged(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) {
		for _, c := range iwarpIn(t, path) {
			step := 1 + len(c.events)/20
			if testrig.Everything() {
				step = 1
			}
			for i := 0; i < len(c.events); i += step {
				if e := c.events[i]; e.startup == nil && e.fpdu.CRC == decode.CRCRight {
					wantDamage(t, c, i)
				}
			}
		}
	})
}

// wantDamage damages one FPDU of a connection.
func wantDamage(t *testing.T, c *connection, i int) {
	t.Helper()
	pieces := c.pieces()
	bad := bytes.Clone(pieces[i].bytes)
	bad[len(bad)-5] ^= 1
	pieces[i].bytes = bad
	got := rewrite(t, pieces, capture.MaxMSS)
	j := slices.IndexFunc(got.events, func(e event) bool {
		return e.dir == c.events[i].dir &&
			e.offset == c.events[i].offset
	})
	if j < 0 || got.events[j].fpdu.Err == nil || got.events[j].fpdu.Err.Code != mpa.CodeCRC ||
		!bytes.Equal(got.events[j].bytes, bad) {
		t.Errorf("event %d, %v: damaged, it gives %q", i, c.events[i], lines(got))
		return
	}
	// The search for the next FPDU may wait for more bytes, while the other direction
	// goes on.
	for _, dir := range []capture.Dir{fromInitiator, fromResponder} {
		want, rest := only(slices.Delete(slices.Clone(c.events), i, i+1), dir),
			only(slices.Delete(slices.Clone(got.events), j, j+1), dir)
		if d := cmp.Diff(texts(want), texts(rest)); d != "" {
			t.Errorf("event %d, %v: damaged, the others are (-want +got):\n%s", i, c.events[i], d)
		}
	}
	if n := len(got.findings); n == 0 || !slices.ContainsFunc(got.findings,
		func(f decode.Finding) bool { return f.Name == "crc-wrong" }) {
		t.Errorf("event %d, %v: damaged, %d findings", i, c.events[i], n)
	}
}
