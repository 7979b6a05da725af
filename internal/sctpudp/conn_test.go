package sctpudp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestMessages: both directions, several streams, PPIDs and lengths kept, and the sender hears that all has arrived.
func TestMessages(t *testing.T) {
	a, b := connect(t, Config{})
	if a.MaxMessage() != 1444 || a.Streams() != 64 || b.Streams() != 64 {
		t.Errorf("messages of %d, %d and %d streams", a.MaxMessage(), a.Streams(), b.Streams())
	}
	if err := a.Send(sctp.Message{PPID: 16, Data: make([]byte, 1445)}); !errors.Is(err, sctp.ErrSize) {
		t.Errorf("too long: %v", err)
	}
	for from, to := range map[*end]*end{a: b, b: a} {
		seen := map[string]bool{}
		const n = 200
		for i := range n {
			data := bytes.Repeat([]byte{byte(i)}, 1+i*7)
			testrig.Must(t, from.Send(sctp.Message{Stream: uint16(i % 16), PPID: uint32(16 + i%2), Data: data}))
		}
		for range n {
			m := within(t, to.messages)
			i := int(m.Data[0])
			if len(m.Data) != 1+i*7 || int(m.Stream) != i%16 || int(m.PPID) != 16+i%2 ||
				m.Data[len(m.Data)-1] != byte(i) {
				t.Fatalf("%d bytes of message %d on stream %d with PPID %d", len(m.Data), i, m.Stream, m.PPID)
			}
			seen[fmt.Sprint(i)] = true
		}
		if len(seen) != n {
			t.Errorf("%d messages", len(seen))
		}
		acked := map[uint64]uint64{}
		for total := uint64(0); total < n; {
			ack := within(t, from.acks)
			if ack[1] <= acked[ack[0]] || ack[1] > n/16+1 {
				t.Fatalf("%d messages of stream %d, after %d", ack[1], ack[0], acked[ack[0]])
			}
			total += ack[1] - acked[ack[0]]
			acked[ack[0]] = ack[1]
		}
	}
}

// TestEnds: what each side hears of an end.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(a *end)
		want error
		text string
	}{
		"shutdown": {func(a *end) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			testrig.Must(t, a.Shutdown(ctx))
		}, lowerlayer.ErrShutdown, ""},
		"abort": {func(a *end) { a.Abort("enough") }, lowerlayer.ErrAborted, "enough"},
	} {
		a, b := connect(t, Config{})
		testrig.Must(t, a.Send(sctp.Message{PPID: 16, Data: []byte("last")}))
		within(t, b.messages)
		c.end(a)
		if err := within(t, b.lost); !errors.Is(err, c.want) || !bytes.Contains([]byte(err.Error()), []byte(c.text)) {
			t.Errorf("%s: the peer heard %v", name, err)
		}
		if err := within(t, a.lost); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: we heard %v", name, err)
		}
		for _, c := range []*end{a, b} {
			if err := c.Send(sctp.Message{PPID: 16, Data: []byte("more")}); err == nil {
				t.Errorf("%s: sent afterwards", name)
			}
		}
	}
}

// TestShutdownIsLast: what came before a SHUTDOWN is handed out before the end is told, however slowly.
func TestShutdownIsLast(t *testing.T) {
	server, client := endpoint(t, true, Config{}), endpoint(t, false, Config{})
	for range 10 {
		a, err := client.Dial(t.Context(), server.at())
		testrig.Must(t, err)
		b, err := server.Accept(t.Context())
		testrig.Must(t, err)
		run(a)
		told, n := make(chan int, 1), 0 // one stream: one goroutine counts
		counted := make(chan int, 100)
		go b.Run(func(sctp.Message) { <-b.path.done; n++; counted <- n }, func(uint16, uint64) {},
			func(error) { told <- len(counted) })
		for i := range 100 {
			testrig.Must(t, a.Send(sctp.Message{PPID: 16, Data: []byte{byte(i)}}))
		}
		testrig.Must(t, a.Shutdown(t.Context()))
		if got := within(t, told); got != 100 {
			t.Fatalf("%d messages before the end", got)
		}
	}
}

// TestSilence: a peer that is gone without a word is noticed, whether or not there is something to send.
func TestSilence(t *testing.T) {
	for _, busy := range []bool{false, true} {
		server, client := endpoint(t, true, Config{}), endpoint(t, false, Config{Heartbeat: 20 * time.Millisecond})
		a, _ := dial(t, client, server)
		_ = server.Close()
		if busy {
			_ = a.Send(sctp.Message{PPID: 16, Data: []byte("hello?")}) // an error if the silence was noticed before
		}
		if err := within(t, a.lost); !errors.Is(err, lowerlayer.ErrSilent) {
			t.Errorf("busy %t: %v", busy, err)
		}
	}
}

// TestHeartbeatInfo: a HEARTBEAT has its parameter, without which Linux ends the association, and its answer keeps the
// peer.
//
// RFC 9260, section 3.3.5.
func TestHeartbeatInfo(t *testing.T) {
	e := endpoint(t, true, Config{Heartbeat: 10 * time.Millisecond, Silence: patience})
	s := meet(t, e)
	theirs, c := s.opens(e)
	for range 3 {
		tag, beat := s.hears(chunk.TypeHeartbeat)
		v := beat.Value
		if tag != s.ours.Tag || len(v) < 5 || binary.BigEndian.Uint16(v) != chunk.ParamHeartbeatInfo ||
			int(binary.BigEndian.Uint16(v[2:])) != len(v) {
			t.Errorf("HEARTBEAT with tag %x: % x", tag, beat)
		}
		s.says(theirs.Tag, chunk.TypeHeartbeatAck, 0, v)
	}
	s.says(theirs.Tag, chunk.TypeData, 7, data(s.ours.TSN, 1, 16, "still here"))
	if m := within(t, c.messages); string(m.Data) != "still here" {
		t.Errorf("%q", m.Data)
	}
}

// TestHeartbeat: a peer that has nothing to say is not given up.
func TestHeartbeat(t *testing.T) {
	a, b := connect(t, Config{Heartbeat: 10 * time.Millisecond, Silence: patience})
	began := time.Unix(0, a.path.heard.Load())
	for deadline := time.Now().Add(patience); time.Unix(0,
		a.path.heard.Load()).Sub(began) < 100*time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no heartbeat was answered")
		}
	}
	testrig.Must(t, a.Send(sctp.Message{PPID: 16, Data: []byte("here")}))
	within(t, b.messages)
}

// TestShared: many associations on one socket of the listener.
func TestShared(t *testing.T) {
	server := endpoint(t, true, Config{})
	for i := range 20 {
		a, b := dial(t, endpoint(t, false, Config{}), server)
		testrig.Must(t, a.Send(sctp.Message{PPID: 16, Data: []byte{byte(i)}}))
		if m := within(t, b.messages); m.Data[0] != byte(i) {
			t.Fatalf("association %d got % x", i, m.Data)
		}
	}
}

// TestNobody: nothing comes back where nobody speaks SCTP, and an end of the context ends the attempt.
func TestNobody(t *testing.T) {
	pc, client := socket(t), endpoint(t, false, Config{HandshakeTimeout: 50 * time.Millisecond})
	defer func() { _ = pc.Close() }()
	silent := pc.LocalAddr().(*net.UDPAddr).AddrPort()
	if _, err := client.Dial(t.Context(), silent); !errors.Is(err, lowerlayer.ErrNoAnswer) ||
		errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 50ms; does") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Dial(ctx, silent); !errors.Is(err, context.Canceled) ||
		!errors.Is(err, lowerlayer.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if _, _, n := client.count(); n != 0 {
		t.Errorf("%d handshakes are left", n)
	}
}

// TestRoundTrip: both ends know the round trip from the handshake, and later on from what was acknowledged.
func TestRoundTrip(t *testing.T) {
	const delay = 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		active, passive := linked(t, testrig.Link{Delay: delay}, Config{})
		if a, b := active.RoundTrip(), passive.RoundTrip(); a != 2*delay || b != 2*delay {
			t.Errorf("dialed: %v, accepted: %v", a, b)
		}
		to, from := run(passive), run(active)
		testrig.Must(t, from.Send(sctp.Message{PPID: 16, Data: []byte("bytes")}))
		<-to.messages
		<-from.acks
		if got := active.RoundTrip(); got <= 2*delay || got > time.Second { // with the delay of a SACK
			t.Errorf("acknowledged: %v", got)
		}
	})
}

// TestUnsent: what the congestion window does not let out yet was not sent, and that is so of its own stream alone.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := linked(t, testrig.Link{Delay: 20 * time.Millisecond}, Config{})
		from, to := run(active), run(passive)
		want := func(when string, unsent bool) {
			t.Helper()
			synctest.Wait()
			if one, other := from.Unsent(1), from.Unsent(2); one != unsent || other {
				t.Errorf("%s: unsent on one stream: %t, on another: %t", when, one, other)
			}
		}
		want("before the first", false)
		testrig.Must(t, from.Send(sctp.Message{Stream: 2, PPID: 16, Data: []byte("bytes")}))
		want("after one", false)
		const more = 50
		go func() {
			for range more {
				testrig.Must(t, from.Send(sctp.Message{Stream: 1, PPID: 16, Data: make([]byte, 1400)}))
			}
		}()
		want("after many", true)
		for range 1 + more {
			<-to.messages
		}
		want("when all have come", false)
	})
}

// TestBundled: short messages wait without their sender while nothing may be sent, and then share packets. Too many
// keep their sender waiting.
func TestBundled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var packets atomic.Int32
		counts := testrig.Link{Delay: 20 * time.Millisecond, Lose: func() bool { packets.Add(1); return false }}
		active, passive := linked(t, counts, Config{})
		from, to := run(active), run(passive)
		send := func(n, size int) (waited time.Duration) {
			began := time.Now()
			for range n {
				testrig.Must(t, from.Send(sctp.Message{PPID: 16, Data: make([]byte, size)}))
			}
			return time.Since(began)
		}
		const long, short = 6, 64
		waited := send(long, 1400)
		synctest.Wait()
		before := packets.Load()
		if waited += send(short, 64); waited > 0 || !from.Unsent(0) {
			t.Errorf("waited for %v; not all is sent: %t", waited, from.Unsent(0))
		}
		for range long + short {
			<-to.messages
		}
		if n := packets.Load() - before; n > short/4 { // in both directions
			t.Errorf("%d packets", n)
		}
		if send(2*maxUnsent/1400, 1400) == 0 {
			t.Error("no wait for twice as much as is taken")
		}
	})
}

// TestBlockedAtEnd: who waits to send hears at once that the association has ended.
func TestBlockedAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := linked(t, testrig.Link{Delay: 20 * time.Millisecond}, Config{})
		from, to := run(active), run(passive)
		failed := make(chan error)
		go func() {
			var err error
			for err == nil {
				err = from.Send(sctp.Message{PPID: 16, Data: make([]byte, 1400)})
			}
			failed <- err
		}()
		synctest.Wait()
		from.Abort("enough")
		synctest.Wait()
		select {
		case err := <-failed:
			if !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		default:
			t.Fatal("it waits still")
		}
		<-to.lost
	})
}

// TestShutdownAhead: whichever end shuts the association down, what Send has taken before arrives, also what waits
// unsent then.
func TestShutdownAhead(t *testing.T) {
	for _, bySender := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			active, passive := linked(t, testrig.Link{Delay: 20 * time.Millisecond}, Config{})
			from, to := run(active), run(passive)
			const n = 12
			for range n {
				testrig.Must(t, from.Send(sctp.Message{PPID: 16, Data: make([]byte, 1400)}))
			}
			if !from.Unsent(0) {
				t.Error("all is sent")
			}
			ends := to
			if bySender {
				ends = from
			}
			testrig.Must(t, ends.Shutdown(t.Context()))
			<-to.lost
			if got := len(to.messages); got != n {
				t.Errorf("shut down by the sender: %t; %d messages have come, want %d", bySender, got, n)
			}
		})
	}
}

// TestUnacked: what the peer has not acknowledged is known of each stream by itself, until it has.
func TestUnacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := linked(t, testrig.Link{Delay: 10 * time.Millisecond}, Config{})
		run(from)
		run(to)
		const id, bytes = 3, 100
		if n := from.Unacked(id); n != 0 {
			t.Errorf("%d bytes before the first message", n)
		}
		testrig.Must(t, from.Send(sctp.Message{Stream: id, PPID: 16, Data: make([]byte, bytes)}))
		if n, other := from.Unacked(id), from.Unacked(id+1); n != bytes || other != 0 {
			t.Errorf("%d bytes, and %d of another stream, want %d and none", n, other, bytes)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := from.Unacked(id); n != 0 {
			t.Errorf("%d bytes are not acknowledged after a second", n)
		}
		free := make(chan struct{})
		go func() { from.Unacked(id); close(free) }()
		<-free // it keeps no lock
	})
}
