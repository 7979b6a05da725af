package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// receiving is a setup in which both ends post their receives themselves.
func receiving(r iwarp.Receives) rig.Setup {
	qp := iwarp.QPConfig{Receives: r}
	return rig.Setup{Dialer: iwarp.Dialer{QP: qp}, Accept: iwarp.AcceptConfig{QP: qp}}
}

// wantMessage expects a message, and gives it back.
func wantMessage(t *testing.T, e *rig.End, want string) {
	t.Helper()
	m, err := e.Receive(rig.Within(t))
	rig.Must(t, err)
	if got := string(m.Bytes()); got != want {
		t.Fatalf("received %q, want %q", got, want)
	}
	m.Done()
}

func sendText(t *testing.T, e *rig.End, text string) {
	t.Helper()
	mr := e.MR(len(text), 0)
	copy(mr.Bytes(), text)
	rig.Must(t, e.Send(rig.Within(t), mr.Slice(0, len(text))))
}

// Messages come in the order in which they were sent, whoever sends faster, and the end after them.
func TestReceive(t *testing.T) {
	t.Parallel()
	ini, res := receiving(iwarp.Receives{Count: 4, Size: 64}).Connect(t)
	const n = 100
	go func() {
		for i := range n {
			sendText(t, ini, string(rune('a'+i%26)))
		}
		ini.Close()
	}()
	i := 0
	for m, err := range res.Messages(rig.Within(t)) {
		rig.Must(t, err)
		if got := string(m.Bytes()); got != string(rune('a'+i%26)) {
			t.Fatalf("message %d is %q", i, got)
		}
		i++
	}
	if i != n {
		t.Errorf("%d messages, want %d", i, n)
	}
	_, err := res.Receive(rig.Within(t))
	if !errors.Is(err, io.EOF) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	rig.Should(t, res.Close())
}

// What has arrived is received first, and then the end: also where no receive can be posted any more for another.
func TestReceiveAfterTheEnd(t *testing.T) {
	t.Parallel()
	for sent := range 6 {
		ini, res := receiving(iwarp.Receives{Count: 4, Size: 64}).Connect(t)
		for range sent {
			sendText(t, ini, "letter")
		}
		closing := rig.DialInBackground(t, ini.Close)
		if sent <= 4 { // else the FIN is behind what waits
			res.WantEvent(iwarp.EventHalfClosed)
		}
		for range sent {
			wantMessage(t, res, "letter")
		}
		if _, err := res.Receive(rig.Within(t)); !errors.Is(err, io.EOF) || !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("%d sent, and then: %v", sent, err)
		}
		rig.Must(t, res.Close())
		rig.Must(t, <-closing)
	}
}

// A message that is not done with keeps its memory; one that is done with twice gives back one receive.
func TestMessageDone(t *testing.T) {
	t.Parallel()
	ini, res := receiving(iwarp.Receives{Count: 2, Size: 64}).Connect(t)
	sendText(t, ini, "one")
	first, err := res.Receive(rig.Within(t))
	rig.Must(t, err)
	for _, text := range []string{"two", "three", "four"} {
		sendText(t, ini, text)
		wantMessage(t, res, text)
	}
	if string(first.Bytes()) != "one" {
		t.Errorf("the first message has become %q", first.Bytes())
	}
	first.Done()
	first.Done()
	for _, text := range []string{"five", "six", "seven"} {
		sendText(t, ini, text)
	}
	a, err := res.Receive(rig.Within(t))
	rig.Must(t, err)
	b, err := res.Receive(rig.Within(t))
	rig.Must(t, err)
	if _, err := res.Receive(soon(t)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Done") {
		t.Errorf("with all messages out: %v", err)
	}
	if !bytes.Equal(a.Bytes(), []byte("five")) || !bytes.Equal(b.Bytes(), []byte("six")) {
		t.Errorf("%q and %q", a.Bytes(), b.Bytes())
	}
	a.Done()
	wantMessage(t, res, "seven")
	b.Done()
}

// Who has closed its half receives what the peer still sends, and then a loop over the messages ends in order.
func TestMessagesAfterCloseWrite(t *testing.T) {
	t.Parallel()
	s := receiving(iwarp.Receives{Count: 2, Size: 64})
	s.Accept.QP.Linger = time.Minute // a busy machine may need more than 100 ms for an answer
	for range 20 {
		ini, res := s.Connect(t)
		sendText(t, ini, "question")
		rig.Must(t, ini.CloseWrite())
		wantMessage(t, res, "question")
		sendText(t, res, "answer")
		closed := rig.DialInBackground(t, res.Close)
		var got []string
		for m, err := range ini.Messages(rig.Within(t)) {
			rig.Must(t, err)
			got = append(got, string(m.Bytes()))
		}
		if len(got) != 1 || got[0] != "answer" {
			t.Errorf("%q", got)
		}
		rig.Should(t, <-closed)
		if _, err := ini.Receive(rig.Within(t)); !errors.Is(err, io.EOF) || !errors.Is(err, iwarp.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
		rig.Should(t, ini.Close())
	}
}

// A QP that this end closes is no end of messages, also after CloseWrite.
func TestCloseAfterCloseWrite(t *testing.T) {
	t.Parallel()
	ini, _ := receiving(iwarp.Receives{Count: 2, Size: 64}).Connect(t)
	rig.Must(t, ini.CloseWrite())
	rig.Must(t, ini.Abort())
	if _, err := ini.Receive(rig.Within(t)); errors.Is(err, io.EOF) || !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A context that is over gets no message, though one is there.
func TestReceiveTooLate(t *testing.T) {
	t.Parallel()
	ini, res := receiving(iwarp.Receives{Count: 2, Size: 64}).Connect(t)
	sendText(t, ini, "here")
	rig.Until(t, func() bool { return res.Stats().ReceivedFPDUs > 0 }, "a message")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := res.Receive(over); !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", m.Bytes(), err)
	}
	wantMessage(t, res, "here")
}

// soon is a context that ends soon.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Who closes with messages unread ends in order for the peer, and is told how many there were.
func TestUnreadMessages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 9} { // in receives, and waiting for some
		ini, res := receiving(iwarp.Receives{Count: 3, Size: 64}).Connect(t)
		for range n {
			sendText(t, ini, "unread")
		}
		held := min(n, 6) // then the peer is held back, if each message came by itself
		rig.Until(t, func() bool { return res.Stats().ReceivedFPDUs >= uint64(held) }, "messages")
		closed := make(chan error, 1)
		go func() { closed <- res.Close() }()
		if _, err := ini.Receive(rig.Within(t)); !errors.Is(err, io.EOF) {
			t.Errorf("%d: the peer of who closes: %v", n, err)
		}
		rig.Should(t, ini.Close())
		rig.Should(t, <-closed)
		var unread *iwarp.UnreadError
		if err := res.Err(); !errors.As(err, &unread) || unread.Messages != n {
			t.Errorf("%d messages were unread: %v", n, err)
		}
		if got := res.RNIC.Stats().Discarded; got != uint64(n) {
			t.Errorf("%d messages were discarded; counted: %d", n, got)
		}
		if err := ini.Err(); !errors.Is(err, iwarp.ErrPeerClosed) || errors.As(err, &unread) {
			t.Errorf("the peer: %v", err)
		}
	}
}

// A Read whose answer is behind messages that nobody receives says so; it goes on when they are received.
func TestReadHeldBack(t *testing.T) {
	t.Parallel()
	s := receiving(iwarp.Receives{Count: 2, Size: 64, Timeout: 50 * time.Millisecond})
	ini, res := s.Connect(t)
	src, dst := res.MR(8, iwarp.RemoteRead), ini.MR(8, iwarp.LocalWrite)
	binary.BigEndian.PutUint64(src.Bytes(), 42)
	for range 6 {
		sendText(t, res, "unread")
	}
	rig.Until(t, func() bool { return ini.Stats().ReceivedFPDUs >= 4 }, "messages")
	_, err := ini.Read(rig.Within(t), dst.Slice(0, 8), src.Remote(0))
	var pending *iwarp.PendingError
	if !errors.Is(err, iwarp.ErrHeldBack) || !errors.As(err, &pending) || !strings.Contains(err.Error(), "call Receive") {
		t.Fatalf("a Read behind messages: %v", err)
	}
	for range 6 {
		wantMessage(t, ini, "unread")
	}
	<-pending.Free
	if binary.BigEndian.Uint64(dst.Bytes()) != 42 {
		t.Error("the Read has not gone on")
	}
}

// A turn is 64 bytes there and back, in one of the ways to receive.
func turns(t testing.TB, s rig.Setup,
	receive func(ctx context.Context, e *rig.End, into *iwarp.MR) error) (turn func()) {
	ini, res := s.Connect(t)
	ctx := t.Context()
	send := func(e *rig.End, mr *iwarp.MR) error { return e.Send(ctx, mr.Slice(0, 64)) }
	in, out := ini.MR(64, iwarp.LocalWrite), ini.MR(64, 0)
	go func() {
		in, out := res.MR(64, iwarp.LocalWrite), res.MR(64, 0)
		for receive(ctx, res, in) == nil && send(res, out) == nil {
		}
	}()
	return func() {
		rig.Must(t, send(ini, out))
		rig.Must(t, receive(ctx, ini, in))
	}
}

// byMessage receives with a QP that posts its receives itself.
func byMessage(ctx context.Context, e *rig.End, _ *iwarp.MR) error {
	m, err := e.Receive(ctx)
	m.Done()
	return err
}

// byPost receives with the verbs.
func byPost(ctx context.Context, e *rig.End, into *iwarp.MR) error {
	if _, err := e.RecvCQ().Next(ctx); err != nil {
		return err
	}
	return e.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{into.Slice(0, 64)}})
}

// posted is a setup whose ends have posted receives.
func posted() rig.Setup {
	prepare := func(qp *iwarp.QP) error {
		mr, err := qp.PD().Register(make([]byte, 64), iwarp.LocalWrite)
		for range 2 {
			err = errors.Join(err, qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, 64)}}))
		}
		return err
	}
	return rig.Setup{Dialer: iwarp.Dialer{Prepare: prepare}, Accept: iwarp.AcceptConfig{Prepare: prepare}}
}

// A turn by messages takes no memory, whichever way they are sent, nor does a Read before them.
func TestReceiveNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	s := receiving(iwarp.Receives{Count: 4, Size: 64})
	s.Dialer.QP.SendDepth, s.Accept.QP.SendDepth = 1, 1
	for name, turn := range map[string]func(){
		"Send":   turns(t, s, byMessage),
		"Submit": submits(t, s),
	} {
		for range 500 {
			turn()
		}
		if n := testing.AllocsPerRun(1000, turn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// submits has each end submit two Reads, of which the second waits for room until the first is answered, and a Send.
func submits(t *testing.T, s rig.Setup) (turn func()) {
	ini, res := s.Connect(t)
	ctx := t.Context()
	exchange := func(e *rig.End, mr *iwarp.MR, from iwarp.Remote) error {
		wr := iwarp.SendWR{Op: iwarp.OpRead, Remote: from, SGL: []iwarp.SGE{mr.Slice(0, 64)}}
		first, err1 := e.Submit(ctx, &wr)
		second, err2 := e.Submit(ctx, &wr)
		sent, err3 := e.Submit(ctx, &iwarp.SendWR{SGL: wr.SGL})
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		_, err1 = first.Wait(ctx)
		_, err2 = second.Wait(ctx)
		_, err3 = sent.Wait(ctx)
		return errors.Join(err1, err2, err3, byMessage(ctx, e, nil))
	}
	a, b := ini.MR(64, iwarp.LocalWrite|iwarp.RemoteRead), res.MR(64, iwarp.LocalWrite|iwarp.RemoteRead)
	fromA, fromB := a.Remote(0), b.Remote(0)
	go func() {
		for exchange(res, b, fromA) == nil {
		}
	}()
	return func() { rig.Must(t, exchange(ini, a, fromB)) }
}

func BenchmarkTurn(b *testing.B) {
	for name, f := range map[string]func() func(){
		"messages": func() func() { return turns(b, receiving(iwarp.Receives{Count: 16}), byMessage) },
		"posted":   func() func() { return turns(b, posted(), byPost) },
	} {
		b.Run(name, func(b *testing.B) {
			turn := f()
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
		})
	}
}

// Recv counts on no message having come: where one may have, it says what to do, and the connection goes on.
func TestRiskyRecv(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	mr := res.MR(8, iwarp.LocalWrite)
	for range 2 {
		if _, err := res.Recv(rig.Within(t), mr.Slice(0, 8)); !errors.Is(err, iwarp.ErrRiskyRecv) ||
			!strings.Contains(err.Error(), "QPConfig.Receives") {
			t.Errorf("nothing is posted: %v", err)
		}
	}
	res.MustPostRecv(1, mr.Slice(0, 4))
	received := rig.DialInBackground(t, func() error { _, err := res.Recv(rig.Within(t), mr.Slice(4, 4)); return err })
	rig.Until(t, func() bool { return res.Query().Receives == 2 }, "the receive")
	sendText(t, ini, "one")
	sendText(t, ini, "two")
	rig.Should(t, <-received)
	res.WantReceived(1, iwarp.StatusSuccess)
	rig.Finish(t, ini, res)
}

// Receives that cannot be are refused when the QP is created, before their memory is taken.
func TestReceivesMistakes(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	for _, r := range []iwarp.Receives{
		{Count: -1}, {Count: iwarp.MaxQueueDepth + 1}, {Size: -1}, {Size: 1 << 30}, {Count: 1 << 16, Size: 1<<14 + 1},
	} {
		if _, err := pd.CreateQP(iwarp.QPConfig{Receives: r}); !errors.Is(err, iwarp.ErrInvalid) ||
			!strings.Contains(err.Error(), "QPConfig.Receives") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	deep := iwarp.QPConfig{Receives: iwarp.Receives{Count: 2}, RecvDepth: 2}
	if _, err := pd.CreateQP(deep); !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), "RecvDepth") {
		t.Errorf("with a RecvDepth: %v", err)
	}
	qp := rig.NewQP(t, pd, iwarp.QPConfig{Receives: iwarp.Receives{Count: 2}})
	err := qp.PostRecv(&iwarp.RecvWR{})
	if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), "Receive") {
		t.Errorf("PostRecv: %v", err)
	}
	if _, err := rig.NewQP(t, pd, iwarp.QPConfig{}).Receive(t.Context()); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("Receive without Receives: %v", err)
	}
}
