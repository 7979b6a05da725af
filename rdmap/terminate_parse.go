package rdmap

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
)

// The header control bits where siw puts them.
const (
	siwHdrCtM = 0x01
	siwHdrCtD = 0x02
	siwHdrCtR = 0x04
)

// ParseTerminate reads the Terminate Header b, the payload of a Terminate's
// segment. The headers in the result are parts of b.
//
// The control field is read as RFC 5040 has it or as siw sends it, see
// [Layout]. Bytes after the parts that HdrCt announces are ignored:
// RFC 5040, section 7.1, lets absent parts be sent as zeros. An R bit with
// nothing at all after it counts as not set, as siw sets it for Sends too.
//
// A header which is announced and cut short is an error, an [*Error] with
// [CodeCatastrophicStream]. Code and Layout, and all parts before the one at
// fault, are valid even then, if there are [TerminateMinLen] bytes.
func ParseTerminate(b []byte) (Terminate, error) {
	if len(b) < TerminateMinLen {
		return Terminate{}, cutShort("Terminate Control", len(b), TerminateMinLen)
	}
	t, ct := parseTerminateControl(b)
	rest := b[terminateParts:]
	var err error
	if ct&(hdrCtM|hdrCtD) != 0 {
		if rest, err = t.takeLength(rest, ct); err != nil {
			return t, err
		}
	}
	if ct&hdrCtD != 0 {
		if rest, err = t.takeDDPHeader(rest); err != nil {
			return t, err
		}
	}
	if ct&hdrCtR != 0 && len(rest) > 0 {
		err = t.takeRDMAPHeader(rest)
	}
	return t, err
}

// parseTerminateControl reads the first four bytes and returns HdrCt in the RFC's places.
//
// RFC 5040, section 4.8: Reserved is "ignored on receive", so that a bit where siw has
// HdrCt tells nothing by itself [P13]. Where the RFC has no HdrCt, it is siw's layout if
// the parts that it would announce are there. Otherwise it is the reading which makes a
// known code, the RFC's if both do: siw's 0x2005 to 0x2007, which come without parts, are
// then taken for the RFC's 0x0205 to 0x0207.
func parseTerminateControl(b []byte) (t Terminate, ct byte) {
	t.Code = Code(binary.BigEndian.Uint16(b[offLayerEType:]))
	ct = b[offHdrCt] & (hdrCtM | hdrCtD | hdrCtR)
	if ct != 0 {
		return t, ct
	}
	swapped := swapLayerEType(t.Code)
	switch parts := siwParts(b); {
	case parts:
		t.Code, t.Layout, ct = swapped, LayoutSIW, hdrCtD|siwHdrCt(b[offHdrCt])
	case !t.Code.Known() && swapped.Known():
		t.Code, t.Layout = swapped, LayoutSIW
	}
	return t, ct
}

// siwParts reports whether HdrCt as siw has it announces a Terminated DDP Header, and one
// follows. siw announces no other part without one. Zeros are none: they stand for absent
// parts (RFC 5040, section 7.1), and no DDP header is all zeros, as queue 0 has no RDMA
// Write.
func siwParts(b []byte) bool {
	header := b[min(terminateParts+2, len(b)):]
	n := ddp.HeaderLen(header)
	return b[offHdrCt]&siwHdrCtD != 0 && len(header) >= n && len(bytes.Trim(header[:n], "\x00")) > 0
}

// siwHdrCt moves siw's M and R bits to the RFC's places.
func siwHdrCt(b byte) (ct byte) {
	if b&siwHdrCtM != 0 {
		ct |= hdrCtM
	}
	if b&siwHdrCtR != 0 {
		ct |= hdrCtR
	}
	return ct
}

func swapLayerEType(c Code) Code {
	return Code(c.EType())<<12 | Code(c.Layer())<<8 | Code(c.ErrorCode())
}

// takeLength reads the DDP Segment Length. RFC 5040, section 4.8: "It MUST be
// valid if the M bit is set. It MUST be present when the D bit is set." [P15]
func (t *Terminate) takeLength(b []byte, ct byte) (rest []byte, err error) {
	if len(b) < 2 {
		return nil, cutShort("DDP Segment Length", len(b), 2)
	}
	t.SegmentLength, t.HasLength = binary.BigEndian.Uint16(b), ct&hdrCtM != 0
	return b[2:], nil
}

// takeDDPHeader takes the Terminated DDP Header: "112 bits for Tagged Messages
// and 144 bits for Untagged Messages", by its own T bit. [P15]
func (t *Terminate) takeDDPHeader(b []byte) (rest []byte, err error) {
	n := ddp.HeaderLen(b)
	if len(b) < n {
		return nil, cutShort("Terminated DDP Header", len(b), n)
	}
	t.DDPHeader = b[:n:n]
	return b[n:], nil
}

// takeRDMAPHeader takes the Terminated RDMA Header: "224 bits". [P15]
func (t *Terminate) takeRDMAPHeader(b []byte) error {
	if len(b) < ReadRequestLen {
		return cutShort("Terminated RDMA Header", len(b), ReadRequestLen)
	}
	t.RDMAPHeader = b[:ReadRequestLen:ReadRequestLen]
	return nil
}

func cutShort(field string, got, want int) *Error {
	return &Error{
		Code: CodeCatastrophicStream, Op: OpTerminate, Field: field,
		Reason: fmt.Sprintf("expected %d bytes, got %d", want, got),
	}
}

// Header returns the fields of the Terminated DDP Header, if it is there.
func (t *Terminate) Header() (h ddp.Header, ok bool) {
	seg, err := ddp.Parse(t.DDPHeader)
	return seg.Header, err == nil
}

// ReadRequest returns the fields of the Terminated RDMA Header, if it is there.
func (t *Terminate) ReadRequest() (r ReadRequest, ok bool) {
	r, err := ParseReadRequest(t.RDMAPHeader)
	return r, err == nil
}

// String gives the code and what is told of the message in error.
func (t Terminate) String() string {
	s := t.Code.String()
	if h, ok := t.Header(); ok {
		s += " for " + OpcodeOf(&h).String() + ", " + h.String()
	}
	if r, ok := t.ReadRequest(); ok {
		s += ", " + r.String()
	}
	if t.Layout != LayoutRFC {
		s += " (layout of " + t.Layout.String() + ")"
	}
	return s
}
