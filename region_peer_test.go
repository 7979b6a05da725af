package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// wantRead takes a Read Request.
func wantRead(p *rig.Peer) rdmap.ReadRequest {
	s := p.Want(rdmap.OpReadRequest)
	r, err := rdmap.ParseReadRequest(s.Payload)
	rig.Must(p.T, err)
	return r
}

// answer answers a Read Request with bytes that are all the same.
func answerRead(p *rig.Peer, r rdmap.ReadRequest, with byte) { answerPart(p, r, r.Size, with) }

func answerPart(p *rig.Peer, r rdmap.ReadRequest, size uint32, with byte) {
	const most = 1 << 10
	for size > 0 {
		n := min(size, most)
		size -= n
		h := rdmap.OpReadResponse.Header(1)
		h.Last, h.STag, h.TO = n == r.Size, r.SinkSTag, r.SinkTO
		p.Send(p.FPDU(h, bytes.Repeat([]byte{with}, int(n))))
		r.Advance(n)
	}
}

// A peer that ends the connection in the middle of a large ReadAt: what is there is counted, and the error says why no
// more is.
func TestRemoteMemoryTerminated(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	at := ini.At(rig.Within(t), iwarp.Region{Remote: iwarp.Remote{STag: 5}, Len: long})
	got := make([]byte, long)
	var n int
	read := rig.DialInBackground(t, func() (err error) { n, err = at.ReadAt(got, 0); return err })
	first := wantRead(p)
	answerRead(p, first, 7)
	second := wantRead(p)
	answerPart(p, second, second.Size/2, 8) // and the rest never comes
	var h rdmap.Terminate
	h.Code = rdmap.CodeLocalCatastrophic
	p.Send(p.Message(rdmap.OpTerminate, 1, h.Append(nil)))
	rig.Must(t, p.Link.CloseWrite())
	err := rig.Outcome(t, read)
	var end *iwarp.TerminateError
	if !errors.As(err, &end) || !end.Remote || end.Code != h.Code || !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("%v", err)
	}
	if n != int(first.Size) || !bytes.Equal(got[:n], bytes.Repeat([]byte{7}, n)) {
		t.Errorf("%d bytes were read, and the peer has sent %d", n, first.Size)
	}
}

// A ReadAt that is given up leaves its memory alone from then on, and the QP works: its Reads go on without it.
func TestReadAtGivenUp(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	where := iwarp.Region{Remote: iwarp.Remote{STag: 5}, Len: long}
	ctx, cancel := context.WithCancel(t.Context())
	got := make([]byte, long)
	var n int
	read := rig.DialInBackground(t, func() (err error) { n, err = ini.At(ctx, where).ReadAt(got, 0); return err })
	first := wantRead(p)
	answerRead(p, first, 7)
	left := []rdmap.ReadRequest{wantRead(p)}
	rig.Until(t, func() bool { return ini.Stats().Received[rdmap.OpReadResponse].Bytes == uint64(first.Size) }, "a part")
	cancel()
	if err := rig.Outcome(t, read); !errors.Is(err, context.Canceled) || errors.As(err, new(*iwarp.PendingError)) {
		t.Errorf("%v", err)
	}
	if n > int(first.Size) {
		t.Errorf("%d bytes were read, and the peer has sent %d", n, first.Size)
	}
	for i := range got {
		got[i] = 1 // as the race detector sees, too
	}
	for outstanding := ini.Query().Sends - 1; outstanding > 0; outstanding-- {
		left = append(left, wantRead(p))
	}
	for _, r := range left {
		answerRead(p, r, 9)
	}
	again := make([]byte, 8)
	read = rig.DialInBackground(t, func() error { _, err := ini.At(t.Context(), where).ReadAt(again, 0); return err })
	answerRead(p, wantRead(p), 6)
	rig.Must(t, rig.Outcome(t, read))
	if again[0] != 6 || !bytes.Equal(got, bytes.Repeat([]byte{1}, long)) {
		t.Errorf("% x, and what was given up was written to", again)
	}
}

// A WriteAt that is given up leaves its memory alone, too: the peer gets what it was then.
func TestWriteAtGivenUp(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	const size = 32 << 20 // more than TCP takes while the peer does not read
	at := ini.At(rig.EndsOnce(t, func() bool { return ini.Query().Sends >= 8 }),
		iwarp.Region{Remote: iwarp.Remote{STag: 5}, Len: size})
	src := bytes.Repeat([]byte{7}, size)
	n, err := at.WriteAt(src, 0)
	if !errors.Is(err, context.Canceled) || errors.As(err, new(*iwarp.PendingError)) || n >= size {
		t.Fatalf("wrote %d: %v", n, err)
	}
	clear(src)
	ini.MustPost(&iwarp.SendWR{Inline: []byte("done"), Unsignaled: true})
	was := bytes.Repeat([]byte{7}, 64<<10)
	for to := 0; ; {
		s, err := p.Link.NextSegment(time.Time{})
		rig.Must(t, err)
		if rdmap.OpcodeOf(&s.Header) == rdmap.OpSend {
			if to < n {
				t.Errorf("the peer got %d bytes, and %d were sent", to, n)
			}
			break
		}
		if int(s.TO) != to || !bytes.Equal(s.Payload, was[:len(s.Payload)]) {
			t.Fatalf("%v, after %d bytes", s.Header, to)
		}
		to += len(s.Payload)
	}
	_ = ini.Abort()
}

// Flush returns when the peer has answered an empty Read, behind what was written, and needs no right. It may be given
// up, and leaves no memory behind.
func TestRemoteMemoryFlush(t *testing.T) {
	ini, p := rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	at := ini.At(rig.Within(t), iwarp.Region{Remote: iwarp.Remote{STag: 5}, Len: 8})
	_, err := at.WriteAt(make([]byte, 8), 0)
	rig.Must(t, err)
	err = at.Flush(untilPosted(t, ini))
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*iwarp.PendingError)) {
		t.Errorf("%v", err)
	}
	flushed := rig.DialInBackground(t, func() error { return at.Flush(rig.Within(t)) })
	p.Want(rdmap.OpWrite)
	for range 2 {
		if len(flushed) > 0 {
			t.Error("it has not waited for the peer")
		}
		r := wantRead(p)
		if r.Size != 0 {
			t.Errorf("a Read of %d bytes", r.Size)
		}
		h := rdmap.OpReadResponse.Header(1)
		h.Last, h.STag, h.TO = true, r.SinkSTag, r.SinkTO
		p.Send(p.FPDU(h, nil))
	}
	rig.Must(t, rig.Outcome(t, flushed))
}

// A connection that the peer has closed is not the end of the Region.
func TestReadAtIsCutOff(t *testing.T) {
	ini, res := rig.Connect(t)
	at := ini.At(rig.Within(t), res.MR(8, iwarp.RemoteRead).Region())
	rig.Must(t, res.Close())
	n, err := at.ReadAt(make([]byte, 8), 0)
	if n != 0 || errors.Is(err, io.EOF) || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, iwarp.ErrPeerClosed) {
		t.Errorf("%d bytes, %v", n, err)
	}
	var op *iwarp.OpError
	var failed *iwarp.WCError
	if !errors.As(err, &op) && !errors.As(err, &failed) {
		t.Errorf("a %T", err)
	}
}
