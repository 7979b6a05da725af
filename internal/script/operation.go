package script

import (
	"bytes"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// operation is the state of Full Operation on a Link.
type operation struct {
	Terms
	w   mpa.Writer
	r   mpa.Reader
	msn map[uint32]uint32 // messages that were framed, by queue
}

// Operate begins Full Operation with the given terms: what follows in either
// direction are FPDUs. Bytes received and not taken are the first of them.
func (l *Link) Operate(t Terms) {
	l.op = &operation{
		Terms: t, w: mpa.NewWriter(t.MarkersSend, t.CRC), r: mpa.NewReader(t.MarkersReceive, t.CRC),
		msn: map[uint32]uint32{},
	}
}

// Operating reports whether Full Operation has begun. The methods that frame and
// find FPDUs panic before that.
func (l *Link) Operating() bool { return l.op != nil }

// Terms returns the terms of Full Operation.
func (l *Link) Terms() Terms { return l.op.Terms }

// Heard reports whether an FPDU of the other end's was taken, and Spoke whether one
// was framed here.
func (l *Link) Heard() bool { return l.heard }

// Spoke is described with Heard.
func (l *Link) Spoke() bool { return l.spoke }

// SendOffset returns the stream offset of the next FPDU to be framed, and
// ReceiveOffset that of the next one to be taken.
func (l *Link) SendOffset() uint64 { return l.op.w.Offset() }

// ReceiveOffset is described with SendOffset.
func (l *Link) ReceiveOffset() uint64 { return l.op.r.Offset() }

// NextMSN returns the MSN of the next message on a queue, which Header takes.
func (l *Link) NextMSN(qn uint32) uint32 { return ddp.FirstMSN + l.op.msn[qn] }

// Framed returns the next FPDU of the stream around a ULPDU that is given in pieces.
// As all methods that frame, it sends nothing, so that the FPDU can be spoiled,
// split, joined to others or kept back; its place in the stream is taken.
func (l *Link) Framed(ulpdu ...[]byte) []byte {
	l.spoke = true
	return l.op.w.Append(nil, ulpdu...)
}

// Header returns the DDP header of a message of one segment: L=1, and for an untagged
// one the next MSN of its queue.
func (l *Link) Header(op rdmap.Opcode) ddp.Header {
	h := op.Header(l.op.Version)
	h.Last = true
	if !h.Tagged {
		h.MSN = l.NextMSN(h.QN)
		l.op.msn[h.QN]++
	}
	return h
}

// Segment frames a DDP segment.
func (l *Link) Segment(h ddp.Header, payload []byte) []byte { return l.Framed(h.Append(nil), payload) }

// Message frames an untagged message of one segment with the next MSN.
func (l *Link) Message(op rdmap.Opcode, payload []byte) []byte {
	return l.Segment(l.Header(op), payload)
}

// Tagged frames a tagged message of one segment.
func (l *Link) Tagged(op rdmap.Opcode, stag uint32, to uint64, payload []byte) []byte {
	h := l.Header(op)
	h.STag, h.TO = stag, to
	return l.Segment(h, payload)
}

// ReadRequest frames an RDMA Read Request with the next MSN.
func (l *Link) ReadRequest(r rdmap.ReadRequest) []byte {
	return l.Message(rdmap.OpReadRequest, r.Append(nil))
}

// RTRSTag is the STag of RTR indications, and of other messages of zero length. It
// names nothing; some RNICs refuse 0 even where no STag is looked at.
const RTRSTag = 1

// EmptyWrite frames a zero-length RDMA Write, which has no effect.
func (l *Link) EmptyWrite() []byte { return l.Tagged(rdmap.OpWrite, RTRSTag, 0, nil) }

// EmptyRead frames a zero-length RDMA Read Request.
func (l *Link) EmptyRead() []byte { return l.ReadRequest(emptyRead()) }

func emptyRead() rdmap.ReadRequest { return rdmap.ReadRequest{SinkSTag: RTRSTag, SrcSTag: RTRSTag} }

// Ready frames an RTR indication of the First of the kinds, and returns which it is. Of no kind it frames nothing.
func (l *Link) Ready(kinds mpa.RTR) (fpdu []byte, kind mpa.RTR) {
	kind = First(kinds)
	switch kind {
	case mpa.RTRWrite:
		fpdu = l.EmptyWrite()
	case mpa.RTRRead:
		fpdu = l.EmptyRead()
	case mpa.RTRSend:
		fpdu = l.Message(rdmap.OpSend, nil)
	}
	return fpdu, kind
}

// Parting returns the FPDUs that a Responder has to be sent before the connection can
// be left in a way that any peer survives, and nil if there are none: Linux's siw
// crashes its kernel if a connection ends whose Reply waits for an RTR indication, even
// a Reply that says that it is a rejection, and it may not look at the first FPDU before
// another one comes. Each is to be sent a moment after what was before it.
func (l *Link) Parting(q, r mpa.StartupFrame) [][]byte {
	e, enhanced := r.Enhanced()
	if !enhanced || !e.A || l.heard || l.end != Open {
		return nil
	}
	if l.op == nil && len(q) == 0 {
		return nil
	}
	if l.op == nil {
		l.Operate(TermsOf(mpa.RoleInitiator, q, r))
	}
	var parting [][]byte
	if !l.spoke && e.RTR() != 0 {
		ready, _ := l.Ready(e.RTR())
		parting = append(parting, ready)
	}
	return append(parting, l.EmptyWrite())
}

// An FPDU is one that the other end has sent.
type FPDU struct {
	mpa.FPDU
	Bytes []byte // as received, with markers, PAD and CRC
}

// NextFPDU waits for an FPDU and takes it. The error is an *mpa.Error for one that is
// not as it must be, and a *MissingError for one that has not come.
func (l *Link) NextFPDU(until time.Time) (FPDU, error) {
	f, n, err := l.find(&l.op.r, until)
	if err != nil {
		return FPDU{}, err
	}
	l.heard = true
	return FPDU{f, l.Take(n)}, nil
}

// PeekFPDU waits for an FPDU, and does not take it.
func (l *Link) PeekFPDU(until time.Time) (mpa.FPDU, error) {
	r := l.op.r
	f, _, err := l.find(&r, until)
	return f, err
}

func (l *Link) find(r *mpa.Reader, until time.Time) (mpa.FPDU, int, error) {
	for {
		in := l.in
		if l.op.MarkersReceive {
			in = bytes.Clone(in) // the Reader takes the markers out in place
		}
		f, n, err := r.Next(in)
		if err != nil || n > 0 {
			return f, n, err
		}
		if l.end != Open {
			return f, 0, &MissingError{len(l.in), l.end, l.err}
		}
		if err := l.Receive(until); err != nil {
			return f, 0, err
		}
	}
}

// NextSegment waits for an FPDU and takes the DDP segment in it. The error is that of
// NextFPDU, or a *ddp.Error for a ULPDU without room for a DDP header. Nothing else of
// the segment is looked at.
func (l *Link) NextSegment(until time.Time) (ddp.Segment, error) {
	f, err := l.NextFPDU(until)
	if err != nil {
		return ddp.Segment{}, err
	}
	return ddp.Parse(f.ULPDU)
}

// SpoilCRC inverts the CRC of an FPDU, and Seal makes it right again after bytes
// have been changed.
func SpoilCRC(fpdu []byte) []byte {
	for i := len(fpdu) - layout.CRCLen; i < len(fpdu); i++ {
		fpdu[i] ^= 0xff
	}
	return fpdu
}

// Seal is described with SpoilCRC.
func Seal(fpdu []byte) []byte {
	end := len(fpdu) - layout.CRCLen
	return layout.AppendCRC(fpdu[:end], layout.CRC32C(0, fpdu[:end]))
}
