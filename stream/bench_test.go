package stream_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// used reports the CPU time of both ends since a moment.
func used(b *testing.B, since time.Duration) {
	if now := procstat.CPUTime(); now > 0 {
		b.ReportMetric(float64(now-since)/float64(b.N)/1e3, "us-cpu/op")
	}
}

// BenchmarkWrite measures Writes of 1 MiB: to a Conn whose peer reads them, over plain TCP, and as bare RDMA Writes.
// "RDMA Write and copy" tells the peer of each, and the peer copies it. That is what the protocol needs at least.
func BenchmarkWrite(b *testing.B) {
	const size = 1 << 20
	buf := make([]byte, size)
	b.Run("stream", func(b *testing.B) {
		from, to := newRig(b, layers[0], stream.Config{}).pair(b)
		transferred(b, from, to, buf)
	})
	b.Run("RDMA Write", func(b *testing.B) { bareWrites(b, buf, false) })
	b.Run("RDMA Write and copy", func(b *testing.B) { bareWrites(b, buf, true) })
	b.Run("TCP", func(b *testing.B) {
		from, to, err := testrig.TCPPair(b.Context())
		must(b, err)
		defer to.Close()
		transferred(b, from, to, buf)
	})
}

func transferred(b *testing.B, from, to net.Conn, buf []byte) {
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	read := make(chan error, 1)
	go func() {
		into := make([]byte, len(buf))
		var err error
		for err == nil {
			_, err = io.ReadFull(to, into)
		}
		read <- err
	}()
	since := procstat.CPUTime()
	for b.Loop() {
		if _, err := from.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	used(b, since)
	_ = from.Close()
	if err := <-read; err != io.EOF {
		b.Error(err)
	}
}

// bareWrites sends RDMA Writes as large as buf, one after the other, to the same memory. If told, the peer learns of
// each and copies it.
func bareWrites(b *testing.B, buf []byte, told bool) {
	from, to := newRig(b, layers[0], stream.Config{Maps: 1}).pair(b)
	m, err := to.Map(make([]byte, len(buf)), 0)
	must(b, err)
	defer m.Close()
	_, err = to.Write([]byte("!"))
	must(b, err)
	_, err = io.ReadFull(from, make([]byte, 1))
	must(b, err)
	if told {
		go func() {
			word, own := make([]byte, 1), make([]byte, len(buf))
			for err := error(nil); err == nil; _, _ = m.ReadAt(own, 0) {
				_, err = to.Read(word)
			}
		}()
	}
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	since := procstat.CPUTime()
	for b.Loop() {
		if _, err := from.WriteAt(buf, 0); err != nil {
			b.Fatal(err)
		}
		if told {
			if _, err := from.Write(buf[:1]); err != nil {
				b.Fatal(err)
			}
		}
	}
	used(b, since)
}

// BenchmarkRoundTrip measures round trips of 64 bytes: over a Conn, by bare Sends and over plain TCP.
func BenchmarkRoundTrip(b *testing.B) {
	b.Run("stream", func(b *testing.B) {
		a, c := newRig(b, layers[0], stream.Config{}).pair(b)
		roundTrips(b, a, c)
	})
	b.Run("Send", func(b *testing.B) {
		a, c := sendPair(b)
		roundTrips(b, a, c)
	})
	b.Run("TCP", func(b *testing.B) {
		a, c, err := testrig.TCPPair(b.Context())
		must(b, err)
		defer a.Close()
		roundTrips(b, a, c)
	})
}

func roundTrips(b *testing.B, a, c io.ReadWriteCloser) {
	const size = 64
	go func() {
		buf := make([]byte, size)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, size)
	b.SetBytes(size)
	b.ReportAllocs()
	since := procstat.CPUTime()
	for b.Loop() {
		if _, err := a.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(a, buf); err != nil {
			b.Fatal(err)
		}
	}
	used(b, since)
	_ = c.Close()
}

// A sender is an io.ReadWriter that sends each Write by a Send, and posts a receive for each Read.
type sender struct {
	*iwarp.QP
	mr *iwarp.MR
	b  *testing.B
}

func (s sender) Write(p []byte) (int, error) {
	return len(p), s.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: p, Unsignaled: true})
}

func (s sender) Read(p []byte) (int, error) {
	wc, err := s.RecvCQ().Next(s.b.Context())
	if err != nil || wc.Err() != nil {
		return 0, io.EOF
	}
	n := copy(p, s.mr.Bytes()[:wc.Length])
	return n, s.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.mr.Slice(0, len(p))}})
}

// sendPair connects two senders.
func sendPair(b *testing.B) (dialed, accepted sender) {
	b.Helper()
	cfg := iwarp.QPConfig{RecvDepth: 4, MaxInline: 64}
	prepare := func(s *sender) func(*iwarp.QP) error {
		return func(qp *iwarp.QP) (err error) {
			*s = sender{QP: qp, b: b}
			if s.mr, err = qp.PD().Register(make([]byte, 64), iwarp.LocalWrite); err != nil {
				return err
			}
			return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.mr.Slice(0, 64)}})
		}
	}
	ln, err := iwarp.Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { _ = ln.Close() })
	failed := make(chan error, 1)
	go func() {
		req, err := ln.Accept(b.Context())
		if err == nil {
			_, err = req.Accept(b.Context(), iwarp.AcceptConfig{QP: cfg, Prepare: prepare(&accepted)})
		}
		failed <- err
	}()
	d := iwarp.Dialer{QP: cfg, Prepare: prepare(&dialed)}
	_, err = d.Dial(b.Context(), "tcp", ln.Addr().String())
	must(b, err)
	must(b, <-failed)
	b.Cleanup(func() { go dialed.Close(); _ = accepted.Close() })
	return dialed, accepted
}
