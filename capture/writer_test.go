package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestWriter writes a connection and reads it.
func TestWriter(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{MSS: 4, Application: "iwarp"})
	f := openFlow(t, w, 40000)
	sayAll(t, f)
	testrig.Must(t, w.Flush())
	b := newBook(t)
	b.segments = true
	track(t, &file, b)
	const want = `
		0 open 10.0.0.1:40000 -> 10.0.0.2:4791
		0 #1 -> SYN 0+0 empty
		0 #2 <- SYN,ACK 0+0 empty
		0 #3 -> ACK 0+0 empty
		0 #4 -> ACK 0+4 next
		0 #4 -> data 0 "abcd"
		0 #5 -> PSH,ACK 4+2 next
		0 #5 -> data 4 "ef"
		0 #6 <- PSH,ACK 0+3 next
		0 #6 <- data 0 "xyz"
		0 #7 -> FIN,ACK 6+0 empty
		0 #7 -> end 6 FIN
		0 #8 <- ACK 3+0 empty
		0 #9 <- FIN,ACK 3+0 empty
		0 #9 <- end 3 FIN
		0 #10 -> ACK 7+0 empty
		0 forgotten`
	if got, want := b.text(), strings.Join(unindent(want), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c := b.only().c
	if h := c.Halves[forth]; h.MSS != 4 || h.WindowScale != 7 || !c.First.Time.Equal(epoch) ||
		!c.Last.Time.Equal(epoch.Add(3)) {
		t.Errorf("%+v from %v to %v", h, c.First.Time, c.Last.Time)
	}
}

// sayAll adds some bytes, and the end of both directions.
func sayAll(t *testing.T, f *capture.Flow) {
	t.Helper()
	for _, err := range []error{
		f.Send(forth, epoch, []byte("abc"), nil, []byte("de"), []byte("f")),
		f.Send(back, epoch.Add(1), []byte("xyz")),
		f.Send(back, epoch.Add(1)),
		f.Close(forth, epoch.Add(2)),
		f.Close(forth, epoch.Add(2)),
		f.Close(back, epoch.Add(3)),
		f.Reset(back, epoch.Add(4)),
	} {
		testrig.Must(t, err)
	}
	if err := f.Send(forth, epoch, []byte("x")); !errors.Is(err, capture.ErrFlowEnded) {
		t.Errorf("bytes after FIN: got %v, want %v", err, capture.ErrFlowEnded)
	}
}

// TestWriterReset ends a connection by RST.
func TestWriterReset(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{})
	f := openFlow(t, w, 40000)
	for _, err := range []error{f.Send(forth, epoch, []byte("abc")), f.Reset(back, epoch), f.Reset(back, epoch),
		f.Close(forth, epoch), w.Flush()} {
		testrig.Must(t, err)
	}
	if err := f.Send(forth, epoch, []byte("x")); !errors.Is(err, capture.ErrFlowEnded) {
		t.Errorf("bytes after RST: got %v, want %v", err, capture.ErrFlowEnded)
	}
	b := newBook(t)
	track(t, &file, b)
	if e := b.only(); e.ends[forth].Reason != capture.EndRST || e.c.Halves[back].RST != 5 {
		t.Errorf("got %+v", e.c.Halves[back])
	}
}

// TestWriterAcknowledges has the other end acknowledge what comes without an
// answer, and only that.
func TestWriterAcknowledges(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{MSS: 1 << 10})
	f := openFlow(t, w, 40000)
	for _, err := range []error{
		f.Send(forth, epoch, make([]byte, 100<<10)), f.Send(back, epoch, []byte("x")),
		f.Send(forth, epoch, make([]byte, 40<<10)), w.Flush(),
	} {
		testrig.Must(t, err)
	}
	b := newBook(t)
	track(t, &file, b)
	// SYN, ACK and segments; SYN with ACK, one ACK after 64 KiB, and a segment.
	c := b.only().c
	if there, back := c.Halves[forth].Count.Packets, c.Halves[back].Count.Packets; there != 2+140 || back != 3 {
		t.Errorf("%d and %d packets, want 142 and 3", there, back)
	}
}

// TestWriterRoundTrip writes what is drawn, and finds it again: bytes, times, and
// checksums that are right, in all layouts.
func TestWriterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file bytes.Buffer
		w := newWriter(t, &file, capture.WriterConfig{MSS: rapid.IntRange(1, 2000).Draw(t, "mss"),
			Ethernet: rapid.Bool().Draw(t, "Ethernet")})
		ends := [2]string{"192.0.2.1:1", "192.0.2.2:2"}
		if rapid.Bool().Draw(t, "IPv6") {
			ends = [2]string{"[2001:db8::1]:1", "[2001:db8::2]:2"}
		}
		f, err := w.Open(netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1]), epoch)
		testrig.Must(t, err)
		var want dialogue
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			d := capture.Dir(rapid.IntRange(0, 1).Draw(t, "direction"))
			data := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "bytes")
			n := rapid.IntRange(0, len(data)).Draw(t, "cut")
			testrig.Must(t, f.Send(d, epoch, data[:n], data[n:]))
			want[d] = append(want[d], data...)
		}
		testrig.Must(t, w.Flush())
		wantChecksums(t, file.Bytes())
		b := newBook(t)
		track(t, &file, b)
		for d := range want {
			b.only().wantStream(t, capture.Dir(d), want[d])
		}
	})
}

// wantChecksums verifies the checksums of a capture, by summing up 16 bits at a
// time: with a good checksum that is 0xffff.
func wantChecksums(t rapid.TB, file []byte) {
	t.Helper()
	r := openBytes(t, file)
	for p, err := r.Next(); err != io.EOF; p, err = r.Next() {
		testrig.Must(t, err)
		ip := p.Data
		if p.Link == capture.LinkEthernet {
			ip = ip[14:]
		}
		head, addrs := 20, 12
		if ip[0]>>4 == 6 {
			head, addrs = 40, 8
		} else if sum := sum16(ip[:20]); sum != 0xffff {
			t.Fatalf("packet %d: IP sums up to %#x", p.Number, sum)
		}
		pseudo := append(bytes.Clone(ip[addrs:head]), 0, 6)
		pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(ip)-head))
		if sum := sum16(append(pseudo, ip[head:]...)); sum != 0xffff {
			t.Fatalf("packet %d: TCP sums up to %#x", p.Number, sum)
		}
	}
}

func sum16(b []byte) (sum int) {
	for i, v := range b {
		sum += int(v) << (8 * (1 - i&1))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return sum
}

// TestWriterConcurrent has several connections at once.
func TestWriterConcurrent(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{})
	var wg sync.WaitGroup
	for i := range uint16(8) {
		f := openFlow(t, w, 40000+i)
		for _, d := range []capture.Dir{forth, back} {
			wg.Go(func() {
				for range 50 {
					_ = f.Send(d, epoch, make([]byte, 5000))
				}
				_ = f.Close(d, epoch)
			})
		}
	}
	wg.Wait()
	testrig.Must(t, w.Flush())
	s := &idle{}
	track(t, &file, s)
	if want := 8 * 2 * 50 * 5000; s.bytes != want || s.gaps != 0 {
		t.Errorf("%d bytes and %d gaps, want %d and none", s.bytes, s.gaps, want)
	}
}

// TestWriterInOrder has connections that record at the same time: no packet is earlier than the one before it.
func TestWriterInOrder(t *testing.T) {
	var file bytes.Buffer
	var ticks atomic.Int64
	w := newWriter(t, &file, capture.WriterConfig{Now: func() time.Time {
		n := ticks.Add(1)
		for range n % 4 {
			runtime.Gosched() // others take a later time meanwhile, where they can
		}
		return epoch.Add(time.Duration(n))
	}})
	var wg sync.WaitGroup
	for range 8 {
		p := tapInMemory(t, w)
		wg.Go(func() {
			for range 200 {
				_, _ = p.Write([]byte("x"))
			}
			_ = p.Close()
		})
	}
	wg.Wait()
	testrig.Must(t, w.Flush())
	var last time.Time
	r := openBytes(t, file.Bytes())
	for p, err := r.Next(); err != io.EOF; p, err = r.Next() {
		testrig.Must(t, err)
		if p.Time.Before(last) {
			t.Fatalf("packet %d is of %v, after one of %v", p.Number, p.Time, last)
		}
		last = p.Time
	}
}

// TestWriterUnbuffered has each packet in the file as soon as it is recorded, as a program that is killed says nothing
// more.
func TestWriterUnbuffered(t *testing.T) {
	for _, unbuffered := range []bool{true, false} {
		var file bytes.Buffer
		w := newWriter(t, &file, capture.WriterConfig{Unbuffered: unbuffered})
		f := openFlow(t, w, 40000)
		testrig.Must(t, f.Send(forth, epoch, []byte("abc")))
		if got := bytes.Contains(file.Bytes(), []byte("abc")); got != unbuffered {
			t.Errorf("unbuffered is %v, and the bytes are there: %v", unbuffered, got)
		}
	}
}

// A sinkConn is a connection that takes everything.
type sinkConn struct{ net.Conn }

func (sinkConn) Write(b []byte) (int, error) { return len(b), nil }
func (sinkConn) Close() error                { return nil }
func (sinkConn) LocalAddr() net.Addr         { return net.TCPAddrFromAddrPort(client(40000)) }
func (sinkConn) RemoteAddr() net.Addr        { return net.TCPAddrFromAddrPort(server) }

// tapInMemory taps a connection that takes everything.
func tapInMemory(t *testing.T, w *capture.Writer) net.Conn {
	t.Helper()
	c, err := capture.Tap(sinkConn{}, w, forth)
	testrig.Must(t, err)
	return c
}

// TestWriterErrors has what a Writer refuses.
func TestWriterErrors(t *testing.T) {
	for _, cfg := range []capture.WriterConfig{{MSS: -1}, {MSS: capture.MaxMSS + 1},
		{Application: strings.Repeat("x", 1<<16)}} {
		if _, err := capture.NewWriter(io.Discard, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	w := newWriter(t, io.Discard, capture.WriterConfig{})
	for _, ends := range [][2]netip.AddrPort{{}, {client(1), {}}, {client(1), netip.MustParseAddrPort("[::1]:1")}} {
		if f, err := w.Open(ends[0], ends[1], epoch); err == nil || f != nil {
			t.Errorf("%v: got %v (%v), want an error", ends, f, err)
		}
	}
	if _, err := w.Open(netip.MustParseAddrPort("[::ffff:10.0.0.1]:1"), server, time.Time{}); err != nil {
		t.Error("an IPv4 address in the clothes of IPv6:", err)
	}
}

// TestWriterFails has a file that takes no more: that error stays.
func TestWriterFails(t *testing.T) {
	from, to := io.Pipe()
	_ = from.Close()
	w := newWriter(t, to, capture.WriterConfig{})
	f := openFlow(t, w, 40000)
	if err := f.Send(forth, epoch, make([]byte, 1<<20)); err != io.ErrClosedPipe {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
	if err := w.Flush(); err != io.ErrClosedPipe {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
}
