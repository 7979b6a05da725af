package tcp

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// corkedNow asks the system whether it holds back segments that are not full.
func corkedNow(t *testing.T, c *Conn) bool {
	t.Helper()
	var v int
	_ = c.raw.rc.Control(func(fd uintptr) { v, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK) })
	return v != 0
}

// Records arrive as the bytes that they are, however many there are at once, and all of
// them at once: none waits for more.
func TestRecords(t *testing.T) {
	a, b := pair(t)
	if !a.EndRecords(true) {
		t.Fatal("Linux is said not to know records")
	}
	for _, c := range []struct {
		what    string
		sizes   []int
		records int // times that the sizes are sent at once
	}{
		{"a small one", []int{100}, 1},
		{"three", []int{1448, 36, 700}, 1},
		{"more than one call takes", []int{1, 2, 3}, maxMessages},
		{"a large one, whose last segment is not full", []int{200001}, 1},
		{"large ones", []int{65160, 65160, 13}, 1},
		{"a small one again", []int{100}, 1},
		{"many", []int{1000, 3000}, 2 * maxMessages},
	} {
		var v [][]byte
		var want []byte
		for i := range c.records * len(c.sizes) {
			p := bytes.Repeat([]byte{byte(i + 1)}, c.sizes[i%len(c.sizes)])
			v, want = append(v, p), append(want, p...)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			sendAll(t, a, v...)
		}()
		var got []byte
		for len(got) < len(want) {
			got = append(got, recv(t, b, BufferSize, 0)...)
		}
		<-sent
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: %d bytes, other than were sent", c.what, len(got))
		}
	}
}

// TCP_CORK is set when what is written may not fit into the peer's window, here since the peer
// does not read, whether it comes in small writes or in large ones; and it ends with the first
// write that fits again.
func TestRecordsCorked(t *testing.T) {
	for _, size := range []int{1000, 60000, 600000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			a, b := pair(t)
			a.EndRecords(true)
			sendAll(t, a, []byte("one that fits"))
			if corkedNow(t, a) {
				t.Error("corked, with an empty window")
			}
			written, record := len("one that fits"), make([]byte, size)
			for wait := false; !wait; {
				n, w, err := a.TrySend([][]byte{record})
				testrig.Must(t, err)
				written, wait = written+n, w
			}
			if !corkedNow(t, a) {
				t.Error("not corked, with a full window")
			}
			for written > 0 {
				written -= len(recv(t, b, BufferSize, 0))
			}
			for unacknowledged(t, a) { // what was received last
				runtime.Gosched()
			}
			sendAll(t, a, []byte("another that fits"))
			if corkedNow(t, a) {
				t.Error("still corked, with an empty window")
			}
			recv(t, b, BufferSize, 0)
		})
	}
}

// unacknowledged asks whether bytes are on their way.
func unacknowledged(t *testing.T, c *Conn) bool {
	t.Helper()
	n := 0
	_ = c.raw.rc.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return n > 0
}

// What the peer's window has room for is asked once for as many bytes, and then again.
func TestWindowAskedOnce(t *testing.T) {
	a, b := pair(t)
	a.EndRecords(true)
	for before := 0; ; {
		sendAll(t, a, make([]byte, 1000))
		recv(t, b, BufferSize, 0)
		room := a.raw.records.room
		if before > 0 && room != before-1000 {
			if before >= 1000 {
				t.Errorf("room for %d bytes after 1000, before them for %d", room, before)
			}
			return
		}
		before = room
	}
}

// What is no socket has no records.
func TestRecordsOfPipe(t *testing.T) {
	a, _ := piped(t)
	if a.EndRecords(true) {
		t.Error("a pipe is said to know records")
	}
}
