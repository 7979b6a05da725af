package peer

import (
	"bytes"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Operate begins Full Operation: all that follows are FPDUs, framed as send and receive say. Only their Markers and CRC
// are used, and there are CRCs if either has them. A script needs it only to frame FPDUs otherwise than the startup has
// settled: RFC 5044, section 7.1.1. The version of DDP and RDMAP is that of the startup, or 1 if there was none.
func (c *Conn) Operate(send, receive mpa.Framing) {
	c.ok()
	t := script.Terms{Version: 1}
	if c.request != nil && c.reply != nil {
		t = script.TermsOf(c.role, c.request, c.reply)
	}
	t.MarkersSend, t.MarkersReceive, t.CRC = send.Markers, receive.Markers, send.CRC || receive.CRC
	c.link.Operate(t)
}

// begin begins Full Operation as the startup has settled it, if it has not begun. It reports whether it has.
func (c *Conn) begin() bool {
	if !c.link.Operating() && c.request != nil && c.reply != nil {
		c.link.Operate(script.TermsOf(c.role, c.request, c.reply))
	}
	return c.link.Operating()
}

// operating is begin, and an error if Full Operation cannot begin. It reports whether the Conn has no error.
func (c *Conn) operating() bool {
	c.ok()
	if !c.begin() {
		c.fail("a Request and a Reply before the first FPDU, or Operate", "no such startup", nil, nil)
		c.link.Operate(script.Terms{CRC: true, Version: 1}) // for what builds FPDUs
	}
	return c.err == nil
}

// Header returns the DDP header of a message of one segment: L=1, and for an untagged one the next MSN of its queue.
// For a Write or a Read Response the script sets STag and TO. Each segment of a longer message has the same header,
// with its own L, and its own MO or TO.
func (c *Conn) Header(op rdmap.Opcode) ddp.Header {
	c.operating()
	return c.link.Header(op)
}

// Segment returns the next FPDU around a DDP segment.
func (c *Conn) Segment(h ddp.Header, payload []byte) []byte { return c.FPDU(h.Append(nil), payload) }

// FPDU returns the next FPDU around any ULPDU, which is given in pieces: ULPDU_Length, ULPDU, PAD, CRC, and markers if
// they are due (RFC 5044, section 4.1). It does not send the FPDU, but the next one is framed to follow it. A ULPDU of
// more than 65535 bytes, which ULPDU_Length cannot say, is an error.
func (c *Conn) FPDU(ulpdu ...[]byte) []byte {
	c.operating()
	all := bytes.Join(ulpdu, nil)
	if len(all) > math.MaxUint16 {
		if c.err == nil {
			c.err = fmt.Errorf("peer: a ULPDU of %d bytes: an FPDU has %d at most", len(all), math.MaxUint16)
		}
		all = all[:math.MaxUint16]
	}
	c.framed = "FPDU: " + script.DescribeULPDU(all)
	return c.link.Framed(all)
}

// Seal computes the CRC of an FPDU anew, after bytes of it were changed, and returns it.
func Seal(fpdu []byte) []byte { return script.Seal(fpdu) }
