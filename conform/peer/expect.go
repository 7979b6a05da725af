package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// ExpectBytes waits for n bytes, and returns them. A negative n is an error.
func (c *Conn) ExpectBytes(n int) []byte { return c.bytes(n, fmt.Sprintf("%d bytes", n)) }

func (c *Conn) bytes(n int, expected string) []byte {
	if c.ok() && n < 0 {
		c.err = fmt.Errorf("peer: %d bytes cannot be waited for: name 0 or more", n)
	}
	if c.ok() {
		c.missing(expected, c.link.Need(n, c.deadline()))
	}
	if c.err != nil {
		return make([]byte, max(n, 0))
	}
	b := c.link.Take(n)
	c.step(Step{Text: fmt.Sprintf("%d bytes%s", n, script.DescribeStartup(b)), Received: b})
	return b
}

// ExpectStartup waits for a whole Request, Reply or Rtr Frame with a key: mpa.KeyRequest, mpa.KeyReply or mpa.KeyRtr.
// It looks at nothing but the key, and PD_Length says where the frame ends.
func (c *Conn) ExpectStartup(key string) mpa.StartupFrame {
	expected := fmt.Sprintf("a frame with the key %q", key)
	if c.ok() {
		c.missing(expected, c.link.Need(mpa.StartupHeaderLen, c.deadline()))
	}
	if c.err == nil && !strings.HasPrefix(string(c.link.Received()), key) {
		c.fail(expected, c.unread(), c.link.Received(), nil)
	}
	if c.err != nil {
		return mpa.AppendStartup(nil, &mpa.StartupFields{Key: key})
	}
	n := mpa.StartupHeaderLen + int(mpa.StartupFrame(c.link.Received()).PDLength())
	f := mpa.StartupFrame(c.bytes(n, expected))
	c.keep(f, mpa.RoleResponder)
	return f
}

// ExpectSegment waits for an FPDU, which must have the RDMAP opcode, and returns the DDP segment in it.
func (c *Conn) ExpectSegment(op rdmap.Opcode) ddp.Segment {
	expected := "an FPDU of " + op.WithArticle()
	seg, fpdu := c.segment(expected)
	if c.err == nil && rdmap.OpcodeOf(&seg.Header) != op {
		c.failTaken(expected, script.DescribeSegment(&seg), fpdu)
	}
	return seg
}

// ExpectTerminate waits for a Terminate, which must have one of the codes, if there are any. Other messages before it
// are passed over.
func (c *Conn) ExpectTerminate(codes ...rdmap.Code) rdmap.Terminate {
	expected := "a Terminate"
	if len(codes) > 0 {
		expected += fmt.Sprintf(" of %v", codes)
	}
	for c.err == nil {
		seg, fpdu := c.segment(expected)
		if c.err != nil || rdmap.OpcodeOf(&seg.Header) != rdmap.OpTerminate {
			continue
		}
		t, err := rdmap.ParseTerminate(seg.Payload)
		if err != nil || len(codes) > 0 && !slices.Contains(codes, t.Code) {
			c.failTaken(expected, script.DescribeSegment(&seg), fpdu)
		}
		return t
	}
	return rdmap.Terminate{}
}

// segment takes an FPDU, and returns the DDP segment in it and the bytes of the FPDU.
func (c *Conn) segment(expected string) (ddp.Segment, []byte) {
	if !c.ok() || !c.operating() {
		return ddp.Segment{}, nil
	}
	f, err := c.link.NextFPDU(c.deadline())
	if c.missing(expected, err); err != nil {
		return ddp.Segment{}, nil
	}
	c.step(Step{Text: "FPDU: " + script.DescribeULPDU(f.ULPDU), Received: f.Bytes})
	seg, err := ddp.Parse(f.ULPDU)
	if err != nil {
		c.failTaken(expected, err.Error(), f.Bytes)
	}
	return seg, f.Bytes
}

// ExpectFIN waits for the other end to close its half, or all, of the connection in order, and to send nothing before.
func (c *Conn) ExpectFIN() { c.expectEnd("a FIN", script.FIN) }

// ExpectRST waits for the other end to reset the connection, and to send nothing before.
func (c *Conn) ExpectRST() { c.expectEnd("a RST", script.RST) }

func (c *Conn) expectEnd(expected string, end script.End) {
	if !c.ok() {
		return
	}
	switch err := c.link.Need(1, c.deadline()); {
	case err == nil:
		c.fail(expected, c.unread(), c.link.Received(), nil)
	case c.link.End() != end:
		c.missing(expected, err)
	default:
		c.step(Step{Text: "the connection is " + end.String()})
	}
}

// ExpectSilence waits for d, in which the other end must send nothing, and must not end the connection.
func (c *Conn) ExpectSilence(d time.Duration) {
	if !c.ok() {
		return
	}
	expected := fmt.Sprintf("nothing for %v", d)
	switch err := c.link.Need(1, time.Now().Add(d)); {
	case err == nil:
		c.fail(expected, c.unread(), c.link.Received(), nil)
	case c.link.End() != script.Open:
		c.missing(expected, err)
	default:
		c.step(Step{Text: expected})
	}
}

// missing is the error of what has not come, or not whole, or not as it must be.
func (c *Conn) missing(expected string, err error) {
	var m *script.MissingError
	switch {
	case err == nil:
	case errors.As(err, &m) && m.End != script.Open:
		c.fail(expected, fmt.Sprintf("%s, and then the connection was %v", c.unread(), m.End), c.link.Received(), m.Err)
	case m != nil:
		c.fail(expected, c.unread()+" in the time", c.link.Received(), m.Err)
	default:
		c.fail(expected, err.Error(), c.link.Received(), err)
	}
}

// unread says what was received and not taken.
func (c *Conn) unread() string {
	b := c.link.Received()
	if len(b) == 0 {
		return "nothing"
	}
	if c.begin() {
		if f, err := c.link.PeekFPDU(time.Unix(1, 0)); err == nil {
			return "an FPDU: " + script.DescribeULPDU(f.ULPDU)
		}
	}
	return fmt.Sprintf("%d bytes%s", len(b), script.DescribeStartup(b))
}
