package recovery_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// figures are the annotated FPDUs of the documents that package mpa's tests have.
var figures = []string{"rfc5044-fig5", "rfc5044-fig6", "draft-mpa-03-fig5", "draft-mpa-03-fig6", "fpdu-unmarked",
	"siw-fpdu-write", "siw-fpdu-send"}

// received is what a receiver made of a stream: its ULPDUs with their offsets, and
// the error that ended it.
type received struct {
	FPDUs []string
	Err   string
}

// read gives a whole stream to a Reader.
func read(stream []byte, markers, crc bool) (got received) {
	r := mpa.NewReader(markers, crc)
	for b := bytes.Clone(stream); ; {
		f, n, err := r.Next(b)
		switch {
		case err != nil:
			got.Err = err.Error()
			return got
		case n == 0:
			return got
		}
		got.FPDUs = append(got.FPDUs, fmt.Sprintf("%d+%d %x", f.Offset, f.Size, f.ULPDU))
		b = b[n:]
	}
}

// recovered gives a stream to a Receiver in order, in pieces of a size, and lists what a
// receiver gets of it.
func recovered(stream []byte, markers, crc bool, step int) (got received) {
	r := recovery.New(recovery.Config{Markers: markers, CRC: crc})
	for at := 0; at < len(stream); at += step {
		r.Segment(uint64(at), stream[at:min(at+step, len(stream))])
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			if ev.Kind == recovery.Failed {
				got.Err = ev.Err.Error()
				return got
			}
			got.FPDUs = append(got.FPDUs, fmt.Sprintf("%d+%d %x", ev.Offset, ev.End-ev.Offset, ev.ULPDU))
		}
	}
	return got
}

// FuzzReceiver gives any bytes to a Receiver: in order in any split, which has to come
// to what the Reader makes of them, and in any order with any loss, by a script of
// segments.
//
// Proves R04, R06, R07: in order it does what the Reader does, no byte is passed twice,
// and the bound on what is held is kept, whatever comes.
func FuzzReceiver(f *testing.F) {
	for _, name := range figures {
		f.Add(testrig.Vector(f, "../../../mpa/testdata/vectors/"+name),
			[]byte{0, 0, 20, 0, 20, 40, 1, 0, 255}, uint8(3), uint16(0))
	}
	l := even(true, true, 4)
	f.Add(l.stream, []byte{2, 0, 255, 0, 0, 255, 4, 0, 200, 3, 1, 1}, uint8(3), uint16(700))
	f.Add(even(false, true, 4).stream, []byte{2, 0, 255, 6, 0, 255, 128, 0, 0, 4, 9, 255}, uint8(2+4+16), uint16(2000))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 0, 4}, 200), []byte{1, 0, 255, 0, 0, 100}, uint8(1+4+8), uint16(1))
	f.Add(bytes.Repeat([]byte{0}, 2000), []byte{3, 0, 255, 128, 0, 0}, uint8(4+8+16), uint16(140))
	f.Fuzz(func(t *testing.T, stream, script []byte, mode uint8, buffer uint16) {
		markers, crc := mode&1 != 0, mode&2 != 0
		want := read(stream, markers, crc)
		for _, step := range []int{1 + int(buffer)%100, len(stream) + 1} {
			got := recovered(stream, markers, crc, step)
			if diff := cmp.Diff(want.FPDUs, got.FPDUs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("in steps of %d: %s", step, diff)
			}
			// A hint may look at bytes after the FPDU; everything else is equal.
			if (want.Err == "") != (got.Err == "") {
				t.Errorf("in steps of %d: got %q want %q", step, got.Err, want.Err)
			}
		}
		l := &plan{markers: markers, crc: crc, stream: stream, arrived: make([]bool, len(stream))}
		s := newSink(l, recovery.Config{
			Buffer: int(buffer), Resync: mode&4 != 0, MidStream: mode&8 != 0, Guess: mode&16 != 0,
		}, t.Fatalf)
		carryOut(t, s, script, max(int(buffer), recovery.MinBuffer))
	})
}

// carryOut carries out a script: of three bytes, the first two say where a segment begins
// and the third how long it is, or, from 128 on, that what is missing is given up.
func carryOut(t *testing.T, s *sink, script []byte, bound int) {
	for ; len(script) >= 3; script = script[3:] {
		at := min(int(script[0]&0x7f)<<8|int(script[1]), len(s.stream))
		if script[0] < 128 {
			s.loose(segment{at, min(at+4*int(script[2]), len(s.stream))})
		} else {
			s.r.SkipTo(uint64(at))
			s.loose(segment{})
		}
		if got := s.r.Stats(); bound != recovery.MinBuffer && got.Held > bound {
			t.Fatalf("%+v with a buffer of %d", got, bound)
		}
	}
	s.r.SkipTo(math.MaxUint64)
	s.loose(segment{})
}

// loose gives a segment of a stream of which nothing is known.
func (s *sink) loose(seg segment) {
	s.r.Segment(uint64(seg.from), s.stream[seg.from:seg.to])
	for ev, ok := s.r.Next(); ok; ev, ok = s.r.Next() {
		if ev.Kind != recovery.Placed {
			continue
		}
		for i := ev.Offset; i < ev.End; i++ {
			if s.passed[i] {
				s.fail("byte %d was passed twice", i)
			}
			s.passed[i] = true
		}
	}
}
