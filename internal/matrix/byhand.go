package matrix

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// handResponder answers with given frames, and reads on to the end of the connection.
type handResponder struct {
	ln      net.Listener
	replies []*mpa.StartupFields
	tasks   sync.WaitGroup
}

func listenByHand(ctx context.Context, over *network.Network, replies []*mpa.StartupFields) (*handResponder, error) {
	ln, err := over.ListenStream(ctx, over.Here)
	if err != nil {
		return nil, err
	}
	h := &handResponder{ln: ln, replies: replies}
	h.tasks.Go(h.serve)
	return h, nil
}

func (h *handResponder) addr() string { return h.ln.Addr().String() }

// serve ends with the listener. A connection that fails needs no treatment: the
// initiator tells of it.
func (h *handResponder) serve() {
	for _, reply := range h.replies {
		c, err := h.ln.Accept()
		if err != nil {
			return
		}
		h.tasks.Go(func() {
			l := script.NewLink(c)
			defer l.Close()
			if _, err := l.Frame(time.Time{}); err != nil || reply == nil {
				return
			}
			if l.Send(mpa.AppendStartup(nil, reply)) == nil {
				_, _ = l.Rest(time.Time{})
			}
		})
	}
}

// close is called when the connections have ended.
func (h *handResponder) close() {
	_ = h.ln.Close()
	h.tasks.Wait()
}

// askByHand sends a Request, reads what comes and closes.
func askByHand(ctx context.Context, over *network.Network, addr string, request *mpa.StartupFields) error {
	c, err := over.DialStream(ctx, addr)
	if err != nil {
		return err
	}
	l := script.NewLink(c)
	defer l.Close()
	defer network.CloseWith(ctx, c)()
	if err := l.Send(mpa.AppendStartup(nil, request)); err != nil {
		return err
	}
	if _, err := l.Frame(time.Time{}); err != nil { // closed without a Reply
		return ctx.Err()
	}
	if l.CloseWrite() == nil {
		_, _ = l.Rest(time.Time{})
	}
	return ctx.Err()
}

// converse has two ends of a byte stream send each other bytes, and reports whether
// they arrive.
func converse(ctx context.Context, a, b net.Conn) bool {
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		from, to := pair[0], pair[1]
		want := pattern(100, 0x77)
		got := make([]byte, len(want))
		_ = to.SetReadDeadline(deadline(ctx))
		if _, err := from.Write(want); err != nil {
			return false
		}
		if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, want) {
			return false
		}
	}
	return true
}
