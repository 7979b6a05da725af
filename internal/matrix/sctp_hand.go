package matrix

import (
	"cmp"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/sctp"
)

// A Message is one that is sent by hand over SCTP, after its DDP-SSN.
type Message struct {
	PPID uint32
	Data []byte
}

// control returns a session control message with what follows the Function Code.
func control(f sctp.Function, data []byte) Message {
	return Message{sctp.PPIDControl, append(binary.BigEndian.AppendUint16(nil, uint16(f)), data...)}
}

// A hand plays one end of a session by hand, on stream 0.
type hand struct {
	*script.Association
	session *script.Session
	ended   bool // by a Terminate or a Reject of ours
}

func newHand(a *script.Association) *hand { return &hand{Association: a, session: a.Session(0)} }

// say sends messages, each with the next DDP-SSN.
func (h *hand) say(all ...Message) {
	for _, m := range all {
		said := sctp.Message{PPID: m.PPID, Data: sctp.AppendSegment(nil, h.session.SSN, m.Data)}
		h.session.SSN++
		h.Send(said)
		f := said.Function().Plain()
		h.ended = h.ended || f == sctp.FunctionTerminate || f == sctp.FunctionReject
	}
}

// next waits for a session control message of the other end. It returns 0 if the association is over.
func (h *hand) next(ctx context.Context) (sctp.Function, error) {
	for {
		m, ok := h.session.Next(deadline(ctx))
		if end, _ := h.End(); !ok && end == script.Open {
			return 0, cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
		if f := m.Function(); f != 0 || !ok {
			return f, nil
		}
	}
}

// finish sends a Terminate, if nothing else has ended our half.
func (h *hand) finish() {
	if !h.ended {
		h.say(control(sctp.FunctionTerminate, nil))
	}
}

// askOverSCTP plays an initiator: what it says at once, what it says when it has an answer, and its part of the end.
func askOverSCTP(ctx context.Context, addr string, in *Initiator) error {
	conn, err := new(net.Dialer).DialContext(ctx, "udp4", addr)
	if err != nil {
		return err
	}
	defer network.CloseWith(ctx, conn)()
	a, err := script.Associate(ctx, conn, script.DDPSetup(), deadline(ctx))
	if err != nil {
		return err
	}
	defer a.Leave(deadline(ctx))
	h := newHand(a)
	h.say(in.Say...)
	f, err := h.next(ctx)
	if err != nil || f.Plain() != sctp.FunctionAccept {
		return err
	}
	h.say(in.Then...)
	h.finish()
	_, err = h.next(ctx) // its Terminate
	return err
}

// deadline is that of a row, which has one.
func deadline(ctx context.Context) time.Time {
	until, _ := ctx.Deadline() // none is the zero time
	return until
}

// An sctpResponder answers by hand, one association after the other, and ends its half when the other end has.
type sctpResponder struct {
	pc      *net.UDPConn
	answers [][]Message
	tasks   sync.WaitGroup
}

func listenOverSCTP(ctx context.Context, answers [][]Message) (*sctpResponder, error) {
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	r := &sctpResponder{pc: pc, answers: answers}
	r.tasks.Go(func() { r.serve(ctx) })
	return r, nil
}

func (r *sctpResponder) addr() string { return r.pc.LocalAddr().String() }

// close is called when the associations have ended.
func (r *sctpResponder) close() {
	_ = r.pc.Close()
	r.tasks.Wait()
}

// serve takes an association for each list of answers. One that fails needs no treatment: the initiator tells of it.
func (r *sctpResponder) serve(ctx context.Context) {
	defer network.CloseWith(ctx, r.pc)()
	for _, say := range r.answers {
		a, err := script.Answer(ctx, r.pc, script.DDPSetup(), deadline(ctx))
		if err != nil {
			return
		}
		newHand(a).answer(ctx, say)
	}
}

// answer plays a responder until the association is over.
func (h *hand) answer(ctx context.Context, say []Message) {
	defer h.Close()
	for {
		f, err := h.next(ctx)
		switch {
		case err != nil || f == 0:
			return
		case f == sctp.FunctionTerminate:
			h.finish()
		case h.session.SSN == 0:
			h.say(say...)
		}
	}
}
