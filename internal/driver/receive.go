package driver

import (
	"errors"
	"io"
	"runtime"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// A receiver receives over TCP: the receiving goroutine's side of a connection. See role.go for who receives when.
type receiver struct {
	*Conn
	tcp *tcp.Conn
}

// GrowStack grows a new goroutine's stack from 2 KiB to 4 KiB, while next to nothing is on it. To grow it later costs
// more, as the runtime walks through all frames. 4 KiB are enough for taking in an FPDU or a startup frame, and for
// coming to RTS. A stack that is larger stays as it is, unless it is nearly full.
func GrowStack() { growBy(0) }

//go:noinline
func growBy(i int) byte {
	var room [5 << 8]byte
	return room[i]
}

// run is the receiving goroutine. Its first turn sends what goes first, such as an RTR indication. Until it runs, the
// consumer that waited for the connection may have posted a request, which then goes in the same write.
func (r receiver) run() {
	GrowStack()
	r.showEarly()
	r.turn(turn{receiving: true, now: r.now()})
	r.goOn(false)
}

// goOn receives until the connection ends, or has become idle: then a new goroutine goes on, which has a stack of 2 KiB
// until something comes (small). What has grown to 4 KiB never shrinks.
func (r receiver) goOn(small bool) {
	if r.receive(small) {
		go r.goOn(true)
		return
	}
	r.awaitFINAck()
}

// receive takes in what comes. It reports whether it has stopped because the connection is idle.
func (r receiver) receive(small bool) (idle bool) {
	for {
		r.awaitRoom()
		err := r.tcp.RecvSoon()
		if r.tcp.IsRenewed(err) {
			return true
		}
		if small {
			GrowStack()
			small = false
		}
		if !r.takeIn(err) {
			return false
		}
		switch woke, back := r.yieldsRole(); {
		case back:
			leads, again := r.tcp.YieldRole()
			if !again {
				return false
			}
			r.yieldedRole(leads)
		case woke:
			// Goroutines that were woken by what came go first: finding the socket empty
			// and waiting for it takes a system call.
			runtime.Gosched()
		}
	}
}

// takeIn takes in what Recv brought, for whoever has the role of the receiver. If it reports false, that has ended.
func (r receiver) takeIn(err error) (more bool) {
	defer r.tcp.Done()
	if more = r.received(err); !more {
		r.tcp.Release()
		r.tcp.End()
	}
	return more
}

// received takes in what Recv brought, and reports whether to go on.
func (r receiver) received(err error) bool {
	r.mu.Lock()
	if !r.listening() {
		r.mu.Unlock()
		return false
	}
	now := r.now()
	b := r.tcp.Unread()
	r.role.offer = false
	switch {
	case err == nil:
		r.counts.ReceiveCalls++
		r.learnRoundTrip(now)
		n := r.machine.Input(now, b)
		r.role.quiet = n == len(b)
		r.tcp.Consume(n, r.machine.Need())
		r.noteInput(now)
	case errors.Is(err, io.EOF):
		r.machine.PeerClosed(now, len(b))
	default:
		r.machine.Failed(now, err)
	}
	return r.release(turn{receiving: true, now: now}) && err == nil
}

// Bounds for what a TCP that is aware of MPA shows ahead of order. TCP shows no more than its receive window, which is
// rarely larger; what is beyond is placed when it comes in order.
const (
	EarlySegments = 4096
	EarlyBytes    = 4 << 20
)

// showEarly has segments that arrive ahead of order looked at, where TCP shows them and FPDUs can be found in them.
func (r receiver) showEarly() {
	r.mu.Lock()
	p := r.params()
	r.mu.Unlock()
	if p.MarkersReceive && p.CRC {
		r.tcp.ShowAhead(r.early)
	}
}

// early takes in bytes that TCP shows. It runs in a goroutine of TCP's, while others may receive: all that it does
// happens under the lock, as with what comes in order.
func (r receiver) early(at uint64, b []byte) {
	r.mu.Lock()
	if r.listening() {
		now := time.Now()
		r.machine.InputAhead(now, at, b)
		r.noteInput(now)
	}
	r.release(turn{mode: sendNothing, receiving: true})
}

// awaitFINAck waits, after the peer's FIN, for the end of the connection: the acknowledgement of our FIN, or a reset.
func (r receiver) awaitFINAck() {
	r.mu.Lock()
	wanted := r.listening()
	r.mu.Unlock()
	if !wanted {
		return // as most connections end
	}
	known, err := r.tcp.AwaitEnd()
	switch {
	case !known:
	case err != nil:
		r.fail(err)
	default:
		r.finAcked()
	}
}

// finAcked tells the Machine that the peer has our FIN, unless the connection was given up meanwhile.
func (r receiver) finAcked() {
	r.mu.Lock()
	if r.listening() {
		r.machine.FINAcked(time.Now())
	}
	r.release(turn{receiving: true, now: r.now()})
}
