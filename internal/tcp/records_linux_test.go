package tcp

import (
	"bytes"
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

// Records arrive as the octets that they are, however many there are at once, and all of
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
			t.Fatalf("%s: %d octets, other than were sent", c.what, len(got))
		}
	}
}

// Large writes are made with TCP_CORK, and a number of small ones after them end that.
func TestRecordsCorked(t *testing.T) {
	a, b := pair(t)
	a.EndRecords(true)
	exchange := func(n int) {
		t.Helper()
		sendAll(t, a, make([]byte, n))
		for n > 0 {
			n -= len(recv(t, b, BufferSize, 0))
		}
	}
	for _, c := range []struct {
		n, times int
		corked   bool
	}{{100, 1, false}, {corkFrom, 1, true}, {4 * corkFrom, 1, true}, {100, uncorkFrom - 2, true}, {100, 1, false}, {corkFrom - 1, 20, false}, {corkFrom, 1, true}} {
		for range c.times {
			exchange(c.n)
		}
		if got := corkedNow(t, a); got != c.corked {
			t.Errorf("TCP_CORK is %v after %d writes of %d octets", got, c.times, c.n)
		}
	}
}

// TCP_CORK stays as long as much waits in the socket, and small writes set it that come to
// wait there: here since the peer does not read.
func TestRecordsCorkedWhileOctetsWait(t *testing.T) {
	a, b := pair(t)
	a.EndRecords(true)
	small := make([]byte, corkFrom-1)
	for wait := false; !wait; {
		var err error
		_, wait, err = a.TrySend([][]byte{small})
		testrig.Must(t, err)
	}
	if !corkedNow(t, a) {
		t.Error("not corked, with a full socket")
	}
	testrig.Must(t, a.CloseWrite())
	for b.Recv() == nil {
		b.Consume(len(b.Unread()), 0)
		b.Done()
	}
	b.Done()
}

// What is no socket has no records.
func TestRecordsOfPipe(t *testing.T) {
	a, _ := piped(t)
	if a.EndRecords(true) {
		t.Error("a pipe is said to know records")
	}
}
