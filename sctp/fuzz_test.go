package sctp_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A watched Association gets anything from its peer and its consumer, and keeps what it owes to both.
type watched struct {
	*testing.T
	a       *sctp.Association
	now     time.Time
	given   map[uint16]uint64 // by stream
	acked   map[uint16]uint64
	control map[uint16]uint64 // given when the last control message was
	next    map[uint16]uint16 // our DDP-SSN
	proof   map[uint16]bool   // the peer has answered since
	offered int               // bytes that the peer has sent
}

// checkOutput checks what the Association says against the rules for a sender.
func (w *watched) checkOutput() {
	for m, ok := w.a.Output(); ok; m, ok = w.a.Output() {
		ssn := binary.BigEndian.Uint16(m.Data)
		opens := false
		if m.PPID == sctp.PPIDControl {
			c, err := sctp.ParseControl(m.Data)
			if err != nil {
				w.Fatalf("said % x: %v", m.Data, err)
			}
			opens = c.SSN == 0
			if !opens && w.acked[m.Stream] < w.control[m.Stream] && !w.proof[m.Stream] {
				w.Fatalf("stream %d: %v may overtake the control message before it", m.Stream, c.Function)
			}
		}
		if opens {
			w.next[m.Stream] = 0
		}
		if ssn != w.next[m.Stream] || m.Ordered || len(m.Data) > 1444 {
			w.Fatalf("stream %d: DDP-SSN %d, want %d", m.Stream, ssn, w.next[m.Stream])
		}
		w.next[m.Stream]++
		w.given[m.Stream]++
		if m.PPID == sctp.PPIDControl {
			w.control[m.Stream], w.proof[m.Stream] = w.given[m.Stream], false
		}
	}
	for n := 0; ; n++ {
		e, ok := w.a.Event()
		if !ok {
			break
		}
		if n > 10_000 || e.Kind == sctp.EventSegment && len(e.Segment) > w.offered {
			w.Fatalf("told %+v", e)
		}
	}
}

// FuzzAssociation feeds an Association with messages, acknowledgements, time and its consumer's calls.
func FuzzAssociation(f *testing.F) {
	f.Add([]byte("\x00\x00\x06\x00\x11\x00\x00\x00\x02\x06\x00\x10\x00\x01AB\x05\x00\x06\x00\x11\x00\x02\x00\x04"))
	f.Add([]byte("\x06\x01\x11\x00\x00\x00\x01\x01\x01\x03\x01\x05\x01\x06\x01\x11\x00\x01\x00\x04\x07\xff"))
	f.Add([]byte("\x06\x02\x11\x00\x00\x00\x05\x80\x05\xc0\x09\x01\x02\x04\x02\x07\x80\x07\x80"))
	f.Add([]byte("\x06\x02\x11\x00\x00\x00\x01\x06\x03\x11\x00\x00\x00\x01\x01\x02\x03\x02\x14\x02\x05\x02\x14\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &watched{
			T: t, now: epoch, given: map[uint16]uint64{}, acked: map[uint16]uint64{},
			control: map[uint16]uint64{}, next: map[uint16]uint16{}, proof: map[uint16]bool{},
			a: sctp.New(epoch, sctp.Config{Active: len(b)%2 == 0, Listening: true, Streams: 4, MaxMessage: 1444,
				MaxSessions: 3, MaxPending: 2}),
		}
		for len(b) > 1 && w.a.End().How == sctp.NotYet {
			b = w.step(b)
			w.checkOutput()
			if w.a.Sessions() > 5 {
				t.Fatalf("%d sessions", w.a.Sessions())
			}
		}
		w.a.Lost(nil)
		w.checkOutput()
		if w.a.Sessions() != 0 || !w.a.Deadline().IsZero() {
			t.Fatal("something is left")
		}
	})
}

// step carries out what the first bytes say.
func (w *watched) step(b []byte) (rest []byte) {
	op, id := b[0], uint16(b[1]%5)
	b = b[2:]
	switch op % 8 {
	case 0:
		_, _ = w.a.Connect(w.now, mpa.Offer{ClientServer: id%2 == 0})
	case 1:
		_, _ = w.a.Accept(w.now, id, mpa.Answer{IRD: 1})
	case 2:
		_ = w.a.Reject(w.now, id, nil, 0, 0)
	case 3:
		_ = w.a.Send(id, []byte("segment"))
	case 4:
		switch op & 24 {
		case 0:
			w.a.Close(w.now, id)
		case 8:
			w.a.Abort(w.now, id)
		default:
			w.a.Reset(w.now, id, []byte("last words"))
		}
	case 5:
		w.acked[id] = w.given[id]
		w.a.Acked(w.now, id, w.given[id])
	case 6:
		return w.receive(id, b)
	case 7:
		w.now = w.now.Add(time.Duration(op) * 20 * time.Millisecond)
		w.a.HandleTimeout(w.now)
	}
	return b
}

func (w *watched) receive(id uint16, b []byte) (rest []byte) {
	if len(b) == 0 {
		return nil
	}
	n := min(len(b)-1, int(b[0])>>2+2)
	m := sctp.Message{Stream: id, PPID: sctp.PPIDSegment + uint32(b[0]&1), Ordered: b[0]&2 != 0, Data: b[1 : 1+n]}
	w.offered += n
	w.proof[id] = true
	w.a.Receive(w.now, m)
	return b[1+n:]
}
