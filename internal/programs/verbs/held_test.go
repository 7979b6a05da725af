//go:build linux && (amd64 || arm64)

package verbs

import (
	"io"
	"net"
	"runtime"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// callOf sends the Request of a call for the queue, and waits until it is held, beside as many as are to be.
func (q *queue) callOf(from uint32, held int) net.Conn {
	q.t.Helper()
	conn := q.dialed(from)
	q.holds(from, held)
	return conn
}

// dialed sends the Request of a call for the queue.
func (q *queue) dialed(from uint32) net.Conn {
	q.t.Helper()
	return q.dialedWith(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1,
		PrivateData: q.callBy(from)}))
}

func (q *queue) callBy(from uint32) []byte {
	return ulpdata.QPCall{To: q.number, From: from, GID: loopback, Prefix: true}.Append(nil)
}

func (q *queue) dialedWith(request []byte) net.Conn {
	q.t.Helper()
	conn, err := net.Dial("tcp", (&Path{Number: q.number}).address().String())
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write(request); err != nil {
		q.t.Fatal(err)
	}
	return conn
}

// holds waits until the newest of the calls that the queue holds is from there.
func (q *queue) holds(from uint32, n int) {
	q.t.Helper()
	qp := q.d.qps.get(q.qp)
	for {
		qp.linking.Lock()
		held := slices.Clone(qp.meeting.held)
		qp.linking.Unlock()
		if len(held) == n && held[n-1].caller.From == from {
			return
		}
		runtime.Gosched()
	}
}

// TestHeldCalls: calls of others, and of one that is gone, are not in the way of the peer's, whenever it comes.
func TestHeldCalls(t *testing.T) {
	a, b := byNumber(roce(t), roce(t))
	for from := range uint32(heldAtMost) {
		conn := b.callOf(from, int(from)+1)
		_ = conn.Close()
	}
	a.meet(b.number) // calls b, which knows nothing of it
	b.holds(a.number, heldAtMost)
	b.callOf(3, heldAtMost) // once more
	b.meet(a.number)
	exchange(t, a, b)
}

// TestHeldCallRefused: of more calls than are held the oldest is refused, and of those of one caller the earlier.
func TestHeldCallRefused(t *testing.T) {
	b := roce(t)
	again := b.callOf(1000, 1)
	oldest := b.callOf(1, 2)
	b.callOf(1000, 2)
	b.refuses(again)
	for n := 3; n <= heldAtMost; n++ {
		b.callOf(uint32(n), n)
	}
	b.callOf(1001, heldAtMost)
	b.refuses(oldest)
}

// refuses waits for the refusal of a call.
func (q *queue) refuses(conn net.Conn) {
	q.t.Helper()
	answer := make([]byte, 20+ulpdata.QPRefusalLen)
	if _, err := io.ReadFull(conn, answer); err != nil {
		q.t.Fatal(err)
	}
	_, err := ulpdata.ParseQPRefusal(answer[20:])
	if err != nil {
		q.t.Fatal(err)
	}
}

// TestNewestHeld: when as many calls are held as may be, the oldest gives way to the newest.
func TestNewestHeld(t *testing.T) {
	b := roce(t)
	for n := range heldAtMost {
		b.callOf(uint32(1+n), 1+n)
	}
	b.callOf(1000, heldAtMost)
	q := b.inner()
	q.linking.Lock()
	defer q.linking.Unlock()
	for i, from := range []uint32{2, 3, 4, 5, 6, 7, 8, 1000} {
		want(t, "a caller", q.meeting.held[i].caller.From, from)
	}
}

// TestCalledTwice: who calls with the numbers of a peer that is there is refused, at either end, and the connection
// goes on.
func TestCalledTwice(t *testing.T) {
	a, b := met(t)
	exchange(t, a, b)
	for _, way := range [][2]*queue{{a, b}, {b, a}} {
		conn := way[1].dialed(way[0].number)
		way[1].refuses(conn)
	}
	exchange(t, a, b)
}
