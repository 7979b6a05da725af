package interop_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files beside the captures")

// eachCapture runs a subtest for every stored capture.
func eachCapture(t *testing.T, f func(t *testing.T, path string)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/captures/*.pcap")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".pcap"), func(t *testing.T) { f(t, path) })
	}
}

// iwarpIn returns the connections of a capture that carry iWARP. The guests'
// own talk on another port, by which they wait for each other, does not.
func iwarpIn(t testing.TB, path string) []*conversation {
	t.Helper()
	all := slices.DeleteFunc(readCapture(t, path), func(c *conversation) bool { return !c.startsMPA() })
	if len(all) == 0 {
		t.Fatalf("%s: no connection begins with an MPA Request", path)
	}
	for _, c := range all {
		if c.lost != 0 {
			t.Fatalf("%s: %s: the capture is not whole", path, c.name)
		}
	}
	return all
}

func (c *conversation) startsMPA() bool {
	i := slices.IndexFunc(c.pieces, func(p piece) bool { return p.dir == fromInitiator })
	return i >= 0 && bytes.HasPrefix(c.pieces[i].bytes, []byte(mpa.KeyRequest))
}

// decodeAll decodes a connection which is without fault.
func decodeAll(t testing.TB, pieces []piece) []event {
	t.Helper()
	events, err := decode(pieces)
	if err != nil {
		t.Fatalf("after %d events: %v", len(events), err)
	}
	return events
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
			events := decodeAll(t, c.pieces)
			wantContiguous(t, events)
			fmt.Fprintf(&got, "%s\n", c.name)
			for _, line := range lines(events) {
				got.WriteString(line + "\n")
			}
		}
		wantGolden(t, strings.TrimSuffix(path, ".pcap")+".golden", got.String())
	})
}

// wantContiguous checks that every octet of a stream belongs to one event.
func wantContiguous(t testing.TB, events []event) {
	t.Helper()
	var next [2]uint64
	for _, e := range events {
		if e.offset != next[e.dir] {
			t.Errorf("%v is at offset %d, want %d", e, e.offset, next[e.dir])
		}
		next[e.dir] = e.offset + uint64(e.size)
	}
}

// wantGolden compares a text with a file, or makes the file so with -update.
func wantGolden(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, d)
	}
}

// TestCapturesCut decodes the same octets in other pieces than TCP had cut: how
// segments fall is nothing to the decoders.
//
// Proves R02, R04
func TestCapturesCut(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) {
		for _, c := range iwarpIn(t, path) {
			whole := decodeAll(t, c.pieces)
			for _, n := range []int{1, 7} {
				wantSame(t, whole, decodeAll(t, cut(c.pieces, n)))
			}
			// in one piece, the two directions no longer take turns
			merged := decodeAll(t, merge(c.pieces))
			wantSame(t, byDirection(whole), byDirection(merged))
		}
	})
}

func wantSame(t testing.TB, want, got []event) {
	t.Helper()
	if d := cmp.Diff(lines(want), lines(got)); d != "" {
		t.Errorf("cut otherwise, the octets give (-want +got):\n%s", d)
	}
}

// lines describes events with their places.
func lines(events []event) []string {
	var text []string
	for _, e := range events {
		text = append(text, fmt.Sprintf("%6d %v", e.offset, e))
	}
	return text
}

// cut returns the pieces in pieces of at most n octets.
func cut(pieces []piece, n int) []piece {
	var small []piece
	for _, p := range pieces {
		for part := range slices.Chunk(p.bytes, n) {
			small = append(small, piece{p.dir, part})
		}
	}
	return small
}

// merge returns each direction's octets in one piece.
func merge(pieces []piece) []piece {
	whole := []piece{{dir: fromInitiator}, {dir: fromResponder}}
	for _, p := range pieces {
		whole[p.dir].bytes = append(whole[p.dir].bytes, p.bytes...)
	}
	return whole
}

// byDirection returns the initiator's events and then the responder's.
func byDirection(events []event) []event {
	return slices.SortedStableFunc(slices.Values(events), func(a, b event) int { return int(a.dir - b.dir) })
}

// TestCapturesDamaged flips a bit in each FPDU with a CRC, in the last octet
// before that: no such FPDU comes through, and nothing behind it.
//
// Proves F04, R01
func TestCapturesDamaged(t *testing.T) {
	eachCapture(t, func(t *testing.T, path string) {
		for _, c := range iwarpIn(t, path) {
			for i, e := range decodeAll(t, c.pieces) {
				if e.startup != nil || e.fpdu.crc != crcGood {
					continue
				}
				_, err := decode(flip(c.pieces, e.dir, e.offset+uint64(e.size)-5))
				if bad := new(mpa.Error); !errors.As(err, &bad) || bad.Code != mpa.CodeCRC {
					t.Errorf("event %d, %v: damaged, it gives %v, want a CRC error", i, e, err)
				}
			}
		}
	})
}

// flip returns the pieces with one bit of the octet at a stream offset changed.
func flip(pieces []piece, dir direction, offset uint64) []piece {
	damaged := slices.Clone(pieces)
	for i, p := range damaged {
		if p.dir != dir {
			continue
		}
		if n := uint64(len(p.bytes)); offset >= n {
			offset -= n
			continue
		}
		damaged[i].bytes = slices.Clone(p.bytes)
		damaged[i].bytes[offset] ^= 1
		break
	}
	return damaged
}
