package usertcp

import (
	"errors"
	"io"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Write sends bytes. TCP begins a segment with the first of them, and cuts them wherever it does.
func (c *Conn) Write(p []byte) (int, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	n, err := c.writeAll(p)
	return n, c.opError("write", err)
}

func (c *Conn) writeAll(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var taken int
		taken, err = c.writeSome(&part{p[n:]}, true)
		n += taken
	}
	if n == 0 && err == nil { // of an empty slice
		err = c.mayGoOn(&c.writing)
	}
	return n, err
}

// WriteFPDUs sends each slice as a unit: TCP begins a segment with the first, and never cuts one that is at most
// [Conn.EMSS] bytes long, neither now nor when it sends it again. Small ones share a segment that has room for them
// (RFC 5044, section 3). It waits until at least one is taken, and returns how many bytes were, which are those of
// whole slices. It keeps none of them.
func (c *Conn) WriteFPDUs(fpdus [][]byte) (n int, err error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	for _, b := range fpdus {
		if len(b) == 0 {
			continue
		}
		taken, err := c.writeWhole(b, n == 0)
		if n += taken; taken == 0 { // for want of room, or with an error
			return n, c.opError("write", err)
		}
	}
	return n, nil
}

// writeWhole has TCP take one slice, or nothing. One that is cut anyway, as it is longer than a segment, need not be
// taken in one piece, and is waited for.
func (c *Conn) writeWhole(b []byte, wait bool) (int, error) {
	if len(b) <= c.EMSS() {
		return c.writeSome(&whole{b}, wait)
	}
	if _, err := c.writeAll(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// writeSome has TCP take as much of p as there is room for. It waits until that is something, or else returns 0.
func (c *Conn) writeSome(p tcpip.Payloader, wait bool) (int, error) {
	for {
		if err := c.mayGoOn(&c.writing); err != nil {
			return 0, err
		}
		n, err := c.ep.Write(p, tcpip.WriteOptions{Atomic: true})
		switch err.(type) {
		case nil:
			c.written.Add(uint32(n))
			return int(n), nil
		case *tcpip.ErrWouldBlock, *tcpip.ErrBadBuffer: // the second is that of whole
			if !wait {
				return 0, nil
			}
			c.wait(c.writable, &c.writing)
		default:
			return 0, c.ended(err)
		}
	}
}

// A part is bytes of which any number may be taken from the front. (gVisor's name for what it takes is a Payloader.)
type part struct{ b []byte }

// Len is tcpip.Payloader's.
func (p *part) Len() int { return len(p.b) }

// Read is io.Reader's.
func (p *part) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.b)
	p.b = p.b[n:]
	return n, nil
}

// A whole is bytes that are taken at once, or not at all: what is asked for fewer gets an error, whereupon TCP has
// taken nothing. TCP makes a unit of what it takes at once, which it does not cut unless it is longer than a segment.
type whole struct{ b []byte }

var errNoRoom = errors.New("no room for all")

// Len is tcpip.Payloader's.
func (w *whole) Len() int { return len(w.b) }

// Read is io.Reader's.
func (w *whole) Read(to []byte) (int, error) {
	switch {
	case len(w.b) == 0:
		return 0, io.EOF
	case len(to) == 0: // asked whether this is the end
		return 0, nil
	case len(to) < len(w.b):
		return 0, errNoRoom
	}
	n := copy(to, w.b)
	w.b = nil
	return n, nil
}
