package capture_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// idle is a sink that does nothing but count.
type idle struct {
	segments, bytes, gaps, skipped int
}

func (*idle) Opened(*capture.Connection)                      {}
func (s *idle) Segment(*capture.Connection, *capture.Segment) { s.segments++ }
func (s *idle) Data(_ *capture.Connection, d capture.Data)    { s.bytes += len(d.Bytes) }
func (s *idle) Gap(*capture.Connection, capture.Gap)          { s.gaps++ }
func (*idle) Ended(*capture.Connection, capture.End)          {}
func (*idle) Forgotten(*capture.Connection)                   {}
func (s *idle) Skipped(*capture.Packet, capture.Skip)         { s.skipped++ }

// bulk returns a capture of connections which send at least so many bytes, in
// turns.
func bulk(tb testing.TB, cfg capture.WriterConfig, connections, n int) []byte {
	tb.Helper()
	var file bytes.Buffer
	writeBulk(tb, &file, cfg, connections, n)
	return file.Bytes()
}

func writeBulk(tb testing.TB, to io.Writer, cfg capture.WriterConfig, connections, n int) {
	tb.Helper()
	w := newWriter(tb, to, cfg)
	flows := make([]*capture.Flow, connections)
	for i := range flows {
		flows[i] = openFlow(tb, w, uint16(40000+i))
	}
	write := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for sent := 0; sent < n; sent += len(write) {
		i := sent / len(write)
		testrig.Must(tb, flows[i%connections].Send(capture.Forward,
			epoch.Add(time.Duration(i)*time.Microsecond), write))
	}
	testrig.Must(tb, w.Flush())
}

// BenchmarkTrack reads a capture of segments in order and tracks it.
func BenchmarkTrack(b *testing.B) {
	for _, c := range []struct{ mss, connections int }{{1440, 1}, {1440, 64}, {8960, 1}, {65495, 1}} {
		b.Run(fmt.Sprintf("mss%d/connections%d", c.mss, c.connections), func(b *testing.B) {
			file := bulk(b, capture.WriterConfig{MSS: c.mss, Ethernet: true}, c.connections, 64<<20)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				track(b, bytes.NewReader(file), &idle{})
			}
		})
	}
}

// BenchmarkReorder tracks segments that come in pairs the wrong way round.
func BenchmarkReorder(b *testing.B) {
	const size = 1440
	w := newWire()
	tracker := capture.NewTracker(capture.Config{}, &idle{})
	for _, p := range w.handshake() {
		tracker.Packet(p)
	}
	p := w.data(forth, 0, 0, strings.Repeat("x", size))
	seq := w.isn[forth] + 1
	b.SetBytes(2 * size)
	b.ReportAllocs()
	for b.Loop() {
		for _, at := range [2]uint32{size, 0} {
			binary.BigEndian.PutUint32(p.Data[24:], seq+at)
			tracker.Packet(p)
		}
		seq += 2 * size
	}
}

// BenchmarkRead reads a capture and does nothing with it.
func BenchmarkRead(b *testing.B) {
	file := bulk(b, capture.WriterConfig{}, 1, 64<<20)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		r := openBytes(b, file)
		for _, err := r.Next(); err != io.EOF; _, err = r.Next() {
			testrig.Must(b, err)
		}
	}
}

// BenchmarkWrite makes a capture.
func BenchmarkWrite(b *testing.B) {
	w := newWriter(b, io.Discard, capture.WriterConfig{})
	f := openFlow(b, w, 40000)
	data := make([]byte, 64<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		testrig.Must(b, f.Send(capture.Forward, epoch, data))
	}
}
