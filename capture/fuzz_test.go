package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// tight are limits that little is needed to reach.
var tight = capture.Config{MaxConnections: 3, MaxBuffered: 1000, MaxBufferedTotal: 1500, GapPackets: 3}

// FuzzOpen reads anything: there are packets, and then an error of a known kind;
// and what is told of them is in order.
func FuzzOpen(f *testing.F) {
	for _, text := range []string{pcapLittle, pcapNanoBig, pcapngLittle, pcapngBig} {
		f.Add(testrig.Bytes(f, text))
	}
	if file, err := os.ReadFile("../interop/testdata/captures/siw-rping-p2p.pcap"); err == nil {
		f.Add(file)
	}
	f.Add(bulk(f, capture.WriterConfig{MSS: 100}, 2, 1))
	f.Fuzz(func(t *testing.T, file []byte) {
		b := newBook(t)
		tracker := capture.NewTracker(tight, b)
		r, err := capture.Open(bytes.NewReader(file))
		for err == nil {
			var p *capture.Packet
			if p, err = r.Next(); err == nil {
				tracker.Packet(p)
				b.wantFew(tight.MaxConnections)
			}
		}
		tracker.Flush()
		b.wantFew(0)
		var format *capture.FormatError
		var damage *capture.DamageError
		var cutOff *capture.CutOffError
		if err != io.EOF && !errors.As(err, &format) && !errors.As(err, &damage) && !errors.As(err, &cutOff) {
			t.Errorf("unexpected error %v", err)
		}
	})
}

// wantFew checks how many connections are known.
func (b *book) wantFew(most int) {
	open := 0
	for _, e := range b.known {
		if !e.over {
			open++
		}
	}
	if open > most {
		b.Fatalf("%d connections, want %d at most", open, most)
	}
}

// A script is packets of a few connections, eight bytes for each.
type script []byte

// packet makes the next packet of a script: a port, a direction, flags, an offset
// and an acknowledgment near those that others have or anywhere, a length, and how
// much of it was captured.
func (s *script) packet(w *wire) *capture.Packet {
	var b [8]byte
	*s = (*s)[copy(b[:], *s):]
	d := capture.Dir(b[0] & 1)
	w.ends[forth] = client(40000 + uint16(b[0]>>1&3))
	at, ack := int64(int16(binary.BigEndian.Uint16(b[2:]))), int64(b[4])*16
	if b[0]&0x80 != 0 {
		at <<= 16
	}
	if b[0]&0x40 != 0 {
		ack <<= 20
	}
	p := w.packet(d, capture.Flags(b[1]), at, ack, strings.Repeat("x", int(b[5])))
	p.Data = p.Data[:max(0, len(p.Data)-int(b[6]))]
	w.at = w.at.Add(1 << (b[7] & 31))
	return p
}

// FuzzTracker gives packets that may be anything: what is told is in order, and
// little is kept.
func FuzzTracker(f *testing.F) {
	f.Add([]byte{0, 0x02, 0xff, 0xff, 0, 0, 0, 0, 1, 0x12, 0xff, 0xff, 0, 0, 0, 0, 0, 0x18, 0, 5, 0, 5, 0, 0,
		0, 0x18, 0, 0, 0, 5, 0, 0})
	f.Add([]byte{0, 0x18, 0, 0, 0, 5, 0, 0, 1, 0x10, 0, 0, 1, 0, 0, 30, 0, 0x11, 0, 9, 0, 5, 2, 0,
		1, 0x14, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, w := newBook(t), newWire()
		tracker := capture.NewTracker(tight, b)
		for s := script(data); len(s) > 0; {
			tracker.Packet(s.packet(w))
			b.wantFew(tight.MaxConnections)
			b.wantLittle()
		}
		tracker.Flush()
		b.wantFew(0)
	})
}

// wantLittle checks that no more is held back than the limits say: at
// least the bytes of new segments that were not given out are.
func (b *book) wantLittle() {
	held := uint64(0)
	for _, e := range b.known {
		if e.over {
			continue
		}
		for d := range e.streams {
			if e.ends[d] == nil {
				held += max(e.fresh[d], e.c.Halves[d].Count.Bytes) - e.c.Halves[d].Count.Bytes
			}
		}
	}
	if most := uint64(tight.MaxBufferedTotal) + 256; held > most {
		b.Fatalf("%d bytes are held back, want %d at most", held, most)
	}
}
