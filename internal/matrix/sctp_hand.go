package matrix

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp/internal/sctpudp"
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
	*sctpudp.Conn
	heard chan sctp.Message
	lost  chan struct{}
	said  int  // messages
	ended bool // by a Terminate or a Reject of ours
}

func newHand(c *sctpudp.Conn) *hand {
	h := &hand{Conn: c, heard: make(chan sctp.Message, 1<<10), lost: make(chan struct{})}
	go c.Run(h.hear, func(uint16, uint64) {}, func(error) { close(h.lost) })
	return h
}

// hear keeps what comes, up to more than any row has.
func (h *hand) hear(m sctp.Message) {
	select {
	case h.heard <- m:
	default:
	}
}

// say sends messages, each with the next DDP-SSN.
func (h *hand) say(all ...Message) error {
	for _, m := range all {
		data := append(binary.BigEndian.AppendUint16(nil, uint16(h.said)), m.Data...)
		if err := h.Send(sctp.Message{PPID: m.PPID, Data: data}); err != nil {
			return err
		}
		h.said++
		f := functionOf(m.PPID, data)
		h.ended = h.ended || f == sctp.FunctionTerminate || f == sctp.FunctionReject || f == sctp.FunctionEnhancedReject
	}
	return nil
}

// functionOf is the Function Code of a message, or 0 if it has none.
func functionOf(ppid uint32, data []byte) sctp.Function {
	if ppid != sctp.PPIDControl || len(data) < 4 {
		return 0
	}
	return sctp.Function(binary.BigEndian.Uint16(data[2:]))
}

// next waits for a session control message of the other end. It returns 0 if the association is over.
func (h *hand) next(ctx context.Context) (sctp.Function, error) {
	for {
		select {
		case m := <-h.heard:
			if f := functionOf(m.PPID, m.Data); f != 0 {
				return f, nil
			}
		case <-h.lost:
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// finish sends a Terminate, if nothing else has ended our half.
func (h *hand) finish() error {
	if h.ended {
		return nil
	}
	return h.say(control(sctp.FunctionTerminate, nil))
}

// askOverSCTP plays an initiator: what it says at once, what it says when it has an answer, and its part of the end.
func askOverSCTP(ctx context.Context, addr string, in *Initiator) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	pc, err := listenUDP()
	if err != nil {
		return err
	}
	e := sctpudp.New(pc, false, sctpudp.Config{})
	defer func() { _ = e.Close() }()
	conn, err := e.Dial(ctx, to)
	if err != nil {
		return err
	}
	h := newHand(conn)
	if err := h.say(in.Say...); err != nil {
		return err
	}
	f, err := h.next(ctx)
	if err != nil {
		return err
	}
	if f == sctp.FunctionAccept || f == sctp.FunctionEnhancedAccept {
		if err := h.say(in.Then...); err != nil {
			return err
		}
		if err := h.finish(); err != nil {
			return err
		}
		if _, err := h.next(ctx); err != nil { // its Terminate
			return err
		}
	}
	return h.Shutdown(ctx)
}

func listenUDP() (*net.UDPConn, error) {
	return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

// An sctpResponder answers by hand, and ends its half when the other end has.
type sctpResponder struct {
	e       *sctpudp.Endpoint
	answers [][]Message
	tasks   sync.WaitGroup
}

func listenOverSCTP(ctx context.Context, answers [][]Message) (*sctpResponder, error) {
	pc, err := listenUDP()
	if err != nil {
		return nil, err
	}
	r := &sctpResponder{e: sctpudp.New(pc, true, sctpudp.Config{}), answers: answers}
	r.tasks.Go(func() { r.serve(ctx) })
	return r, nil
}

func (r *sctpResponder) addr() string { return r.e.Addr().String() }

// close is called when the associations have ended.
func (r *sctpResponder) close() {
	_ = r.e.Close()
	r.tasks.Wait()
}

// serve takes an association for each list of answers. One that fails needs no treatment: the initiator tells of it.
func (r *sctpResponder) serve(ctx context.Context) {
	for _, say := range r.answers {
		conn, err := r.e.Accept(ctx)
		if err != nil {
			return
		}
		h := newHand(conn)
		r.tasks.Go(func() {
			for f := sctp.Function(1); f != 0; {
				if f, err = h.next(ctx); err != nil {
					return
				}
				switch {
				case f == sctp.FunctionTerminate:
					_ = h.finish()
				case h.said == 0:
					_ = h.say(say...)
				}
			}
		})
	}
}
