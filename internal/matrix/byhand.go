package matrix

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/mpa"
)

// handResponder answers with frames that are laid down, and reads on to the end of
// the connection.
type handResponder struct {
	ln      net.Listener
	replies []*mpa.StartupFields
	tasks   sync.WaitGroup
}

func listenByHand(replies []*mpa.StartupFields) (*handResponder, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &handResponder{ln: ln, replies: replies}
	h.tasks.Go(h.serve)
	return h, nil
}

// serve ends with the listener; there is nothing to do about a connection that fails.
func (h *handResponder) serve() {
	for _, reply := range h.replies {
		c, err := h.ln.Accept()
		if err != nil {
			return
		}
		h.tasks.Go(func() {
			defer c.Close()
			if readStartup(c) != nil || reply == nil {
				return
			}
			if _, err := c.Write(mpa.AppendStartup(nil, reply)); err == nil {
				_, _ = io.Copy(io.Discard, c)
			}
		})
	}
}

// close is called when the connections have ended.
func (h *handResponder) close() {
	_ = h.ln.Close()
	h.tasks.Wait()
}

// readStartup reads one Request or Reply Frame.
func readStartup(r io.Reader) error {
	header := make([]byte, mpa.StartupHeaderLen)
	if _, err := io.ReadFull(r, header); err != nil {
		return err
	}
	f := mpa.StartupFrame(header)
	_, err := io.CopyN(io.Discard, r, int64(f.PDLength()))
	return err
}

// askByHand sends a Request, reads what comes and closes.
func askByHand(ctx context.Context, addr string, request *mpa.StartupFields) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := c.Write(mpa.AppendStartup(nil, request)); err != nil {
		return err
	}
	if readStartup(c) != nil { // closed without a Reply
		return ctx.Err()
	}
	if err := c.(*net.TCPConn).CloseWrite(); err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
	return ctx.Err()
}

// converse has two ends of a byte stream send each other octets, and reports whether
// they arrive.
func converse(ctx context.Context, a, b net.Conn) bool {
	deadline, _ := ctx.Deadline() // none is the zero time
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		from, to := pair[0], pair[1]
		want := pattern(100, 0x77)
		got := make([]byte, len(want))
		_ = to.SetReadDeadline(deadline)
		if _, err := from.Write(want); err != nil {
			return false
		}
		if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, want) {
			return false
		}
	}
	return true
}
