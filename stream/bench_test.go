package stream_test

import (
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// BenchmarkWrite is Writes of 1 MiB: of a Conn whose peer reads them, of plain TCP, and RDMA Writes that nobody is told of.
func BenchmarkWrite(b *testing.B) {
	const size = 1 << 20
	buf := make([]byte, size)
	b.Run("stream", func(b *testing.B) {
		from, to := newRig(b, layers[0], stream.Config{}).pair(b)
		transferred(b, from, to, buf)
	})
	b.Run("RDMA Write", func(b *testing.B) { bareWrites(b, buf) })
	b.Run("TCP", func(b *testing.B) {
		from, to, err := testrig.TCPPair(b.Context())
		must(b, err)
		defer to.Close()
		transferred(b, from, to, buf)
	})
}

func transferred(b *testing.B, from, to net.Conn, buf []byte) {
	b.SetBytes(int64(len(buf)))
	read := make(chan error, 1)
	go func() {
		into := make([]byte, len(buf))
		var err error
		for err == nil {
			_, err = io.ReadFull(to, into)
		}
		read <- err
	}()
	for b.Loop() {
		if _, err := from.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	_ = from.Close()
	if err := <-read; err != io.EOF {
		b.Error(err)
	}
}

// bareWrites are as large RDMA Writes, one after the other, into memory of the same size as a ring.
func bareWrites(b *testing.B, buf []byte) {
	from, to := newRig(b, layers[0], stream.Config{Maps: 1}).pair(b)
	m, err := to.Map(make([]byte, len(buf)), 0)
	must(b, err)
	defer m.Close()
	_, err = to.Write([]byte("!"))
	must(b, err)
	_, err = io.ReadFull(from, make([]byte, 1))
	must(b, err)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := from.WriteAt(buf, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRoundTrip is one of 64 octets, over a Conn and over plain TCP.
func BenchmarkRoundTrip(b *testing.B) {
	b.Run("stream", func(b *testing.B) {
		a, c := newRig(b, layers[0], stream.Config{}).pair(b)
		roundTrips(b, a, c)
	})
	b.Run("TCP", func(b *testing.B) {
		a, c, err := testrig.TCPPair(b.Context())
		must(b, err)
		defer a.Close()
		roundTrips(b, a, c)
	})
}

func roundTrips(b *testing.B, a, c net.Conn) {
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
	for b.Loop() {
		if _, err := a.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(a, buf); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
}
