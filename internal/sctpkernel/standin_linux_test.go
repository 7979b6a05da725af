package sctpkernel

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// A standIn is the other end of a Conn whose socket is one of a pair, in the place of SCTP's: what is not SCTP's own in
// calls of the kernel is the same, and all that follows from what it says can be seen.
type standIn struct {
	*testing.T
	*Conn
	fd    int
	heard []sctp.Message
	acks  map[uint16]uint64
	ends  int
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	testrig.Must(t, err)
	s, err := watch(fds[0])
	testrig.Must(t, err)
	c := &standIn{T: t, fd: fds[1], acks: map[uint16]uint64{}}
	c.Conn = &Conn{s: s, largest: 1000, done: make(chan struct{}), sent: make(map[uint16]uint64),
		acked: make(map[uint16]uint64)}
	c.onEnd = func() { c.ends++ }
	c.limit.Store(1000)
	t.Cleanup(func() { c.closeDescriptor(); _ = unix.Close(c.fd) })
	return c
}

// says has the kernel say something, and returns whether the association goes on.
func (c *standIn) says(flags int, control, data []byte) bool {
	m := inbounds.Get().(*inbound)
	m.n, m.flags, m.controlLen = copy(m.buf, data), flags, copy(m.control[:], control)
	m.data = m.buf[:m.n]
	return c.handle(m, func(m sctp.Message) { c.heard = append(c.heard, m) },
		func(id uint16, n uint64) { c.acks[id] = n })
}

// notifies is says for a notification.
func (c *standIn) notifies(text string) bool { return c.says(msgNotification, nil, unhex(c.T, text)) }

// wantEnd expects that the association is to end, and over what.
func (c *standIn) wantEnd(goesOn bool, want error, text string) {
	c.Helper()
	cause := c.cause.Load()
	if goesOn || cause == nil || !errors.Is(*cause, want) || !strings.Contains((*cause).Error(), text) {
		c.Errorf("goes on %t, cause %v, want %v", goesOn, cause, want)
	}
}

// sees returns what Conn has sent.
func (c *standIn) sees() string {
	c.Helper()
	b := make([]byte, 2000)
	n, err := unix.Read(c.fd, b)
	if n < 0 {
		return err.Error()
	}
	return string(b[:n])
}

// received is the control message of one on a stream.
func received(stream, flags uint16, ppid byte) []byte {
	b := native.AppendUint32(native.AppendUint32(word(nil, cmsgHeaderLen+rcvInfoLen), protocol), controlRcvInfo)
	b = native.AppendUint16(native.AppendUint16(native.AppendUint16(native.AppendUint16(b, stream), 9), flags), 0)
	return append(append(b, 0, 0, 0, ppid), make([]byte, 16)...)
}

// TestHearing: messages come with their stream, PPID and order, in one piece or in several, each with memory of its
// own; what is no notification that is known changes nothing.
func TestHearing(t *testing.T) {
	c := newStandIn(t)
	if !c.says(msgEOR, received(3, flagUnordered, 16), []byte("whole")) || !c.says(0, nil, []byte("in ")) ||
		!c.says(0, nil, []byte("three ")) ||
		len(c.heard) != 1 || !c.says(msgEOR, received(4, 0, 17), []byte("pieces")) {
		t.Error("it has ended")
	}
	for _, text := range []string{"0280000008000000", upHex, indicationHex, "0180"} {
		if !c.notifies(text) {
			t.Errorf("%s ends it", text)
		}
	}
	want := []sctp.Message{{Stream: 3, PPID: 16, Data: []byte("whole")},
		{Stream: 4, PPID: 17, Ordered: true, Data: []byte("in three pieces")}}
	if len(c.heard) != len(want) {
		t.Fatalf("heard %+v", c.heard)
	}
	for i, m := range c.heard {
		if w := want[i]; m.Stream != w.Stream || m.PPID != w.PPID || m.Ordered != w.Ordered ||
			!bytes.Equal(m.Data, w.Data) {
			t.Errorf("heard %+v, want %+v", m, w)
		}
	}
	if cause := c.cause.Load(); cause != nil {
		t.Errorf("it ends over %v", *cause)
	}
}

// TestEndless: a message that is longer than any DDP Segment ends the association, and the peer hears why.
func TestEndless(t *testing.T) {
	c := newStandIn(t)
	if !c.says(0, nil, make([]byte, lowerlayer.MaxMessage)) {
		t.Error("the longest ends it")
	}
	c.wantEnd(c.says(0, nil, []byte{1}), lowerlayer.ErrViolated, "")
	if said := c.sees(); !strings.Contains(said, "longer than any DDP Segment") {
		t.Errorf("said %q", said)
	}
}

// TestNotifiedEnds: what the association ends over, when the kernel says so in each way.
func TestNotifiedEnds(t *testing.T) {
	littleEndian64(t)
	const (
		restarted = "0180000014000000020000001000100005000000"
		violated  = "01800000140000000100000d0000000007000000"
	)
	for text, want := range map[string]struct {
		err  error
		text string
	}{
		abortedHex:  {lowerlayer.ErrAborted, `"because"`},
		ownAbortHex: {lowerlayer.ErrAborted, ""},
		violated:    {lowerlayer.ErrViolated, "our kernel"},
		completeHex: {lowerlayer.ErrShutdown, ""},
		restarted:   {lowerlayer.ErrRestarted, ""},
		// with its causes: the peer's
		"0180000023000000010000" + "0d0000000008000000000d00097468617400": {lowerlayer.ErrAborted, `"that`},
	} {
		c := newStandIn(t)
		c.wantEnd(c.notifies(text), want.err, want.text)
		if text == restarted && !strings.Contains(c.sees(), lowerlayer.ErrRestarted.Error()) {
			t.Error("the peer does not hear of it")
		}

		c = newStandIn(t)
		c.noteCause(net.ErrClosed) // by us
		c.wantEnd(c.notifies(text), net.ErrClosed, "")
	}
	c := newStandIn(t)
	if !c.notifies(shutdownHex) {
		t.Error("what the peer has sent before may still come")
	}
	c.wantEnd(c.notifies(abortedHex), lowerlayer.ErrShutdown, "") // which came first
	c = newStandIn(t)
	c.wantEnd(c.says(0, nil, nil), lowerlayer.ErrShutdown, "")
}

// TestSending: what is sent counts for its stream, and when the kernel says that nothing is unacknowledged, all that
// was counted has arrived, which is told once.
func TestSending(t *testing.T) {
	littleEndian64(t)
	c := newStandIn(t)
	for _, m := range []sctp.Message{{Stream: 1, PPID: 16, Data: make([]byte, 1000)},
		{Stream: 1, PPID: 17, Data: []byte("two")}, {Stream: 2, PPID: 16, Data: []byte("three")}} {
		testrig.Must(t, c.Send(m))
		if got := c.sees(); got != string(m.Data) {
			t.Errorf("%q was sent", got)
		}
	}
	if err := c.Send(sctp.Message{Data: make([]byte, 1001)}); !errors.Is(err, sctp.ErrSize) {
		t.Errorf("too long: %v", err)
	}
	if !c.notifies(dryHex) || len(c.acks) != 2 || c.acks[1] != 2 || c.acks[2] != 1 {
		t.Errorf("%v have arrived", c.acks)
	}
	clear(c.acks)
	testrig.Must(t, c.Send(sctp.Message{Stream: 2, PPID: 16, Data: []byte("four")}))
	if !c.notifies(dryHex) || len(c.acks) != 1 || c.acks[2] != 2 {
		t.Errorf("then %v", c.acks)
	}
	if c.MaxMessage() != 1000 { // the kernel does not tell
		t.Errorf("messages of %d", c.MaxMessage())
	}
	control, segment := c.about(sctp.Message{Stream: 5, PPID: 17}), c.about(sctp.Message{Stream: 5, PPID: 16})
	if want := (sndInfo{stream: 5, flags: flagUnordered, ppid: 16}); segment != want {
		t.Errorf("a segment goes with %+v", segment)
	}
	if want := (sndInfo{stream: 5, flags: flagUnordered | flagSackImmediately, ppid: 17}); control != want {
		t.Errorf("a control message goes with %+v", control)
	}
	c.closeDescriptor()
	if err := c.Send(sctp.Message{Data: []byte("late")}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestRun: Run takes what comes until the end, and then tells once, with everything closed.
func TestRun(t *testing.T) {
	c := newStandIn(t)
	_, err := unix.Write(c.fd, []byte("without an end"))
	testrig.Must(t, err)
	testrig.Must(t, unix.Shutdown(c.fd, unix.SHUT_WR))
	var lost error
	c.Conn.Run(func(sctp.Message) { t.Error("it is not whole") }, nil, func(err error) { lost = err })
	if !errors.Is(lost, lowerlayer.ErrShutdown) || c.ends != 1 || string(c.partial) != "without an end" {
		t.Errorf("lost: %v, ended %d times, %q", lost, c.ends, c.partial)
	}
	<-c.done
	if got := c.sees(); got != "" {
		t.Errorf("after the end came %q", got)
	}

	c = newStandIn(t)
	testrig.Must(t, c.Send(sctp.Message{Data: []byte("unread")}))
	testrig.Must(t, unix.Close(c.fd))
	c.fd = -1
	if c.Conn.Run(nil, nil, func(err error) { lost = err }); !errors.Is(lost, unix.ECONNRESET) {
		t.Errorf("lost: %v", lost)
	}

	c = newStandIn(t)
	c.Abort("enough")
	c.wantEnd(c.notifies(ownAbortHex), net.ErrClosed, "") // which was read before
	c.Conn.Run(nil, nil, func(err error) { lost = err })
	if got := c.sees(); !errors.Is(lost, net.ErrClosed) || c.ends != 1 || !strings.Contains(got, "enough") {
		t.Errorf("lost: %v, ended %d times, said %q", lost, c.ends, got)
	}
}

// TestShutDown waits for the end, and as long as it may.
func TestShutDown(t *testing.T) {
	c := newStandIn(t)
	ctx := testrig.Within(t)
	go c.Conn.Run(nil, nil, func(error) {})
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(ctx) }()
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, -1) // until it has begun
	testrig.Must(t, err)
	testrig.Must(t, unix.Shutdown(c.fd, unix.SHUT_RDWR))
	testrig.Must(t, <-ended)
	c.wantEnd(false, net.ErrClosed, "")

	c = newStandIn(t)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("a peer that does not take part: %v", err)
	}
}

// TestNotIndicated: without a notification of it, and with something else in its place, there is no DDP.
//
// RFC 5043, section 11.1.
func TestNotIndicated(t *testing.T) {
	c := newStandIn(t)
	for _, want := range []string{"there is none", "that of another protocol"} {
		var v *sctp.Violation
		if err := c.indicated(); !errors.As(err, &v) || v.Rule != sctp.RuleIndication ||
			!strings.Contains(v.Reason, want) {
			t.Errorf("%v, want %q", err, want)
		}
		_, err := unix.Write(c.fd, unhex(t, indicationHex)) // which a peer may send as a message
		testrig.Must(t, err)
	}
}

// TestWhatIsNotified: of a notification its kind counts too, and of a message nothing.
func TestWhatIsNotified(t *testing.T) {
	littleEndian64(t)
	for text, want := range map[string]string{
		upHex: "up", ownAbortHex: "lost", refusedHex: "not started", indicationHex: "DDP", dryHex: "",
		shutdownHex: "", completeHex: "",
		"07800000100000000200000005000000": "", upHex[:8]: "", "": "",
	} {
		for _, flags := range []int{msgNotification, msgNotification | msgEOR, msgEOR, 0} {
			m := inbound{data: unhex(t, text), flags: flags}
			n, got := m.notification(), ""
			for name, is := range map[string]bool{"up": n.is(commUp), "lost": n.is(commLost),
				"not started": n.is(cannotStart), "DDP": n.indicates(1)} {
				if is {
					got += name
				}
			}
			if flags&msgNotification == 0 && got != "" || flags&msgNotification != 0 && got != want {
				t.Errorf("%s with flags %x is %q, want %q", text, flags, got, want)
			}
		}
	}
}

// TestWaiting: who waits for an association, of either role, waits as long as it may, and until the socket is closed; a
// message is none.
func TestWaiting(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *socket) error{
		"Accept": func(ctx context.Context, s *socket) error { _, err := (&Listener{s: s}).Accept(ctx); return err },
		"Dial":   func(ctx context.Context, s *socket) error { _, err := s.answer(ctx); return err },
	} {
		c := newStandIn(t)
		_, err := unix.Write(c.fd, unhex(t, upHex))
		testrig.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- wait(ctx, c.s) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}

		c = newStandIn(t)
		go func() { ended <- wait(t.Context(), c.s) }()
		l := Listener{s: c.s}
		testrig.Must(t, l.Close())
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed again: %v", err)
		}
	}
}

// TestNotGone: what cannot be peeled off, and was not ended, has failed for the reason that there was.
func TestNotGone(t *testing.T) {
	c := newStandIn(t)
	_, err := unix.Write(c.fd, unhex(t, abortedHex)) // a message
	testrig.Must(t, err)
	why := errors.New("so it is")
	for range 2 { // the second time there is nothing at all
		if err := c.s.gone(why); !errors.Is(err, why) {
			t.Error(err)
		}
	}
}

// TestRefusals: an association that has not come up was refused, and if there is a reason it is told.
func TestRefusals(t *testing.T) {
	if err := refused(notification{state: cannotStart}); err != lowerlayer.ErrRefused {
		t.Error(err)
	}
	for _, n := range []notification{{cause: 5}, {info: []byte("\x00\x0c\x00\x06no")},
		{cause: 12, info: []byte("\x00\x0c\x00\x06no")}} {
		if err := refused(n); !errors.Is(err, lowerlayer.ErrRefused) || !errors.Is(err, lowerlayer.ErrAborted) {
			t.Errorf("%+v: %v", n, err)
		}
	}
}
