package recovery_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// An oddity is an FPDU of a sender that breaks rules.
type oddity struct {
	offset, end, size int // size by its ULPDU_Length
	ulpdu             []byte
	crcWrong          bool
}

// odd is a stream of them.
type odd struct {
	markers, crc bool
	stream       []byte
	fpdus        []oddity
}

// add adds an FPDU with some pad.
func (o *odd) add(ulpdu []byte, pad int, crcWrong bool) {
	at := len(o.stream)
	content := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	content = append(append(content, ulpdu...), make([]byte, pad)...)
	header := at + layout.LeadLen(uint64(at), o.markers)
	put := func(b byte) {
		if p := len(o.stream); o.markers && p%layout.MarkerInterval == 0 {
			o.stream = layout.AppendMarker(o.stream, uint64(max(p, header)-header))
		}
		o.stream = append(o.stream, b)
	}
	for _, b := range content {
		put(b)
	}
	if p := len(o.stream); o.markers && p%layout.MarkerInterval == 0 {
		o.stream = layout.AppendMarker(o.stream, uint64(max(p, header)-header))
	}
	sum := uint32(0)
	if o.crc {
		sum = layout.CRC32C(0, o.stream[at:])
	}
	if crcWrong {
		sum = ^sum
	}
	o.stream = layout.AppendCRC(o.stream, sum)
	o.fpdus = append(o.fpdus, oddity{at, len(o.stream),
		layout.Size(uint64(at), len(ulpdu), o.markers), ulpdu, crcWrong})
}

// trueSize answers as one that knows, once it has seen a few bytes more.
func (o *odd) trueSize(d recovery.Doubtful) (size int, ok bool) {
	const more = 5
	for _, f := range o.fpdus {
		if uint64(f.offset) != d.Offset {
			continue
		}
		n, there := f.end-f.offset, len(d.Head)+len(d.Rest)
		switch {
		case n == d.Size && !f.crcWrong || len(d.Head) < min(n, d.Size):
			return 0, false
		case there < n+more && !d.Final && len(d.Head) == d.Size:
			return n + more, false
		}
		return n, there >= n
	}
	return 0, false
}

// oddStream makes a stream of FPDUs, some of which are wrong.
func oddStream(rng *rand.Rand, markers, crc bool) *odd {
	o := &odd{markers: markers, crc: crc}
	for range 12 {
		ulpdu := bytes.Repeat([]byte{byte(1 + rng.IntN(255))}, 14+rng.IntN(700))
		due := layout.PadLen(len(ulpdu))
		switch pad := rng.IntN(8); {
		case rng.IntN(3) > 0:
			o.add(ulpdu, due, crc && rng.IntN(3) == 0)
		case markers: // all is in fours there
			o.add(ulpdu, due+4, false)
		default:
			o.add(ulpdu, pad, false)
		}
	}
	return o
}

// TestReceiverEnd has a Receiver ask where FPDUs end that break rules. However the stream is cut
// into segments, each is reported once, with what is in it, and the next one is found.
//
// Proves F03, F04.
func TestReceiverEnd(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := oddStream(rng, seed&1 > 0, seed&2 > 0)
		r := recovery.New(recovery.Config{Markers: o.markers, CRC: o.crc, Resync: true, End: o.trueSize})
		var got []string
		drain := func() {
			for ev, ok := r.Next(); ok; ev, ok = r.Next() {
				got = append(got, fmt.Sprintf("%v %d-%d %x %x", ev.Kind, ev.Offset, ev.End, ev.ULPDU, ev.Bytes))
				if (ev.Err != nil) != (ev.Kind == recovery.Failed) || ev.Err != nil && ev.Err.Code != mpa.CodeCRC {
					t.Errorf("seed %d: %v with %v", seed, ev.Kind, ev.Err)
				}
			}
		}
		for at, most := 0, 1+rng.IntN(600); at < len(o.stream); {
			n := min(1+rng.IntN(most), len(o.stream)-at)
			r.Segment(uint64(at), bytes.Clone(o.stream[at:at+n]))
			at += n
			drain()
		}
		r.SkipTo(math.MaxUint64)
		drain()
		if len(got) != len(o.fpdus) {
			t.Fatalf("seed %d: %d events of %d FPDUs", seed, len(got), len(o.fpdus))
		}
		for i, f := range o.fpdus {
			kind := recovery.Placed
			if o.crc && (f.crcWrong || f.end-f.offset != f.size) {
				kind = recovery.Failed
			}
			want := fmt.Sprintf("%v %d-%d %x %x", kind, f.offset, f.end, f.ulpdu, o.stream[f.offset:f.end])
			if got[i] != want {
				t.Fatalf("seed %d, FPDU %d:\n%s, want\n%s", seed, i, got[i], want)
			}
		}
	}
}

// TestReceiverEndUnknown has nobody know where a damaged FPDU ends, and ends that cannot be: the
// Receiver searches on as without.
func TestReceiverEndUnknown(t *testing.T) {
	for name, end := range map[string]func(d recovery.Doubtful) (int, bool){
		"not known":      func(recovery.Doubtful) (int, bool) { return 0, false },
		"within":         func(d recovery.Doubtful) (int, bool) { return d.Padded(0) - 1, true },
		"beyond":         func(d recovery.Doubtful) (int, bool) { return len(d.Head) + len(d.Rest) + 1, true },
		"waits in vain":  func(d recovery.Doubtful) (int, bool) { return 1 << 20, false },
		"waits for less": func(d recovery.Doubtful) (int, bool) { return 1, false },
	} {
		l := even(false, true, 3)
		l.stream[600] ^= 1
		s := newSink(l, recovery.Config{Resync: true, End: end}, t.Fatalf)
		s.segment(segment{0, 1100})
		s.segment(segment{1100, len(l.stream)})
		s.r.SkipTo(math.MaxUint64)
		s.drain()
		want := "placed 0-512 in order (512), failed 512-1024 in order (512), lost 512-1024 (1024), resynced 1024-1024 (1024), placed 1024-1536 by scan (1536)"
		if got := s.story(); got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

// TestReceiverEndBeforeGap has bytes be missing behind an FPDU that waits for them: it is reported
// when they are given up.
func TestReceiverEndBeforeGap(t *testing.T) {
	o := &odd{crc: true}
	for i := range 4 {
		o.add(bytes.Repeat([]byte{7}, 40), 2, i == 1)
	}
	r := recovery.New(recovery.Config{CRC: true, Resync: true, End: o.trueSize})
	var got []string
	drain := func() {
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			got = append(got, told(ev))
		}
	}
	second, third := o.fpdus[1].end, o.fpdus[2].end
	r.Segment(0, o.stream[:second])
	drain()
	if len(got) != 1 {
		t.Errorf("%q before what follows is there", got)
	}
	r.Segment(uint64(third), o.stream[third:])
	drain()
	r.SkipTo(uint64(third))
	drain()
	want := "[placed 0-48 in order (48) failed 48-96 in order (96) lost 96-144 (144) resynced 144-144 (144) placed 144-192 by scan (192)]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v\nwant %s", got, want)
	}
}
