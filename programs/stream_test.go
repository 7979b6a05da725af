//go:build linux && interposer

package programs

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// TestStream has rdma-core's rstream, whose rsockets are its own code over the library, stream to and from package
// stream, in both roles. Both ends compare every byte.
func TestStream(t *testing.T) {
	l := built(t)
	for _, options := range []string{
		"-T v -S 65536 -C 20 -I 1", "-T v -S 1 -C 1000 -I 1", "-T v -S 64 -C 1000 -I 1", "-T v -S 1000000 -C 10 -I 1",
		"-T v -T b -S 65536 -C 20 -I 1", "-T v -T n -S 5000 -C 200 -I 1", "-T v -k 1 -S 4096 -C 50 -I 1",
	} {
		x := exchange{}
		x.parse(t, options)
		bothWays(t, "rstream serves "+options, 1, func(t *testing.T) {
			port := freePort(t)
			server := start(t, l, "rstream -p "+port+" "+options)
			server.awaitListening(t, port)
			conn, err := stream.Dial(t.Context(), "tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := x.Lead(conn); err != nil {
				t.Error(err)
			}
			over(t, conn)
			server.awaitSuccess(t)
		})
		bothWays(t, "rstream connects "+options, 1, func(t *testing.T) {
			conn, client := accepted(t, l, "rstream "+options)
			if err := x.Follow(conn); err != nil {
				t.Error(err)
			}
			over(t, conn)
			client.awaitSuccess(t)
		})
	}
}

// TestStreamMaps has rdma-core's riostream and package stream write into each other's memory, in both roles.
func TestStreamMaps(t *testing.T) {
	l := built(t)
	const iterations = 9
	for _, options := range []string{"-T v -S 65536 -C 1 -I 9", "-T v -S 100 -C 1 -I 9", "-T v -S 3000000 -C 1 -I 9"} {
		x := exchange{}
		x.parse(t, options)
		d := stream.Dialer{Config: stream.Config{Maps: 1}}
		bothWays(t, "riostream serves "+options, 1, func(t *testing.T) {
			port := freePort(t)
			server := start(t, l, "riostream -p "+port+" "+options)
			server.awaitListening(t, port)
			conn, err := d.Dial(t.Context(), "tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			mine := mapped(t, conn, x.Size)
			if err := errors.Join(x.Greet(conn), ungreeted(conn), x.swap(conn, mine, true, iterations)); err != nil {
				t.Error(err)
			}
			over(t, conn)
			server.awaitSuccess(t)
		})
		bothWays(t, "riostream connects "+options, 1, func(t *testing.T) {
			conn, client := accepted(t, l, "riostream "+options)
			mine := mapped(t, conn, x.Size)
			if err := errors.Join(ungreeted(conn), x.Greet(conn), x.swap(conn, mine, false, iterations)); err != nil {
				t.Error(err)
			}
			over(t, conn)
			client.awaitSuccess(t)
		})
	}
}

// TestStreamCrossing is testdata/halves.c: rdma-core's rsockets and package stream end their directions before they
// know of each other's, and both say that all is in order.
func TestStreamCrossing(t *testing.T) {
	l := built(t)
	told := filepath.Join(t.TempDir(), "told")
	if err := unix.Mkfifo(told, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, client := accepted(t, l, l.program(t, "halves")+" "+told)
	if _, err := conn.Write([]byte("ours")); err != nil {
		t.Error(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(told, []byte{1}, 0); err != nil { // it waits for that
		t.Error(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "theirs" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	client.awaitSuccess(t) // and has closed its end
	if err := conn.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// mapped has the peer write into memory whose last byte is none that it begins with.
func mapped(t *testing.T, conn *stream.Conn, size int) *stream.Mapping {
	t.Helper()
	buf := make([]byte, size)
	buf[size-1] = 0xFF
	mine, err := conn.Map(buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	return mine
}

// ungreeted takes a greeting, which riostream does not fill in.
func ungreeted(conn io.Reader) error {
	_, err := io.ReadFull(conn, make([]byte, testrig.RstreamGreeting))
	return err
}

// accepted starts a client, and returns its connection with us.
func accepted(t *testing.T, l Library, program string) (*stream.Conn, *process) {
	t.Helper()
	lc := stream.ListenConfig{Acceptor: stream.Acceptor{Config: stream.Config{Maps: 1}}}
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	name, options, _ := strings.Cut(program, " ")
	client := start(t, l, name+" -s 127.0.0.1 -p "+port+" "+options)
	failed := make(chan struct{})
	stop := context.AfterFunc(t.Context(), func() { _ = ln.Close() })
	defer stop()
	go func() {
		select {
		case <-client.done:
			_ = ln.Close()
		case <-failed:
		}
	}()
	conn, err := ln.Accept()
	close(failed)
	if err != nil {
		t.Fatalf("%v; %s: %s", err, program, client.out.String())
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*stream.Conn), client
}

// over holds that the stream ends in order, with nothing more in it.
func over(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.(*stream.Conn).CloseWrite(); err != nil && !errors.Is(err, stream.ErrPeerGone) {
		t.Errorf("CloseWrite: %v", err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("%d bytes more, %v", len(rest), err)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
