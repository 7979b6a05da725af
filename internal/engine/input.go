package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Input takes bytes of the stream, from the first that was not yet consumed,
// and returns how many it consumed; the rest is to be given again with more
// after it. b is scratch space: markers are taken out of it in place.
func (q *Machine) Input(now time.Time, b []byte) int {
	q.arrives(now)
	end := q.rx.Offset() + uint64(len(b))
	q.lookAgain(b)
	n := q.input(b)
	q.placing.End()
	q.caughtUp(end)
	q.weighShown()
	q.inFPDU = n < len(b)
	q.stats.RecvStream += uint64(n)
	q.arrived(now)
	return n
}

// arrives is called before what has come is taken in, and arrived after that.
func (q *Machine) arrives(now time.Time) {
	q.drain.stirred(now)
	q.inputAt = now
}

func (q *Machine) arrived(now time.Time) {
	q.watchSend(now)
	q.watchGap(now)
	q.watchReady(now)
	q.advance(now)
}

func (q *Machine) input(b []byte) int {
	used := 0
	var f mpa.FPDU
	for used < len(b) && q.receiving() {
		n, err := q.rx.NextContent(b[used:], &f)
		if err != nil {
			q.readerError(err)
			break
		}
		if n == 0 {
			return used
		}
		used += n
		q.stats.RecvFPDUs++
		if q.ahead.segments() == 0 || !q.onPlaced(&f, b[used-n:used]) {
			q.onFPDU(&f)
		}
	}
	// RFC 5044, section 8: after an error MPA "MUST NOT pass or deliver any
	// additional FPDUs on that half connection". [Q16]
	return len(b)
}

// receiving reports whether arriving bytes still mean anything. In Closing, which
// Modify leads to, there must be none.
func (q *Machine) receiving() bool {
	switch {
	case q.state == Closing:
		q.badClose()
	case q.state == RTS && q.peerEnded():
		// RFC 5041, section 6.2.1: "any further data received after the request is
		// considered an error and MUST cause the DDP Stream to be abortively torn
		// down." [D31]
		q.abort(fmt.Errorf("bytes came after the peer's FIN: %w", ErrLost))
	}
	return q.state == RTS
}

// Need returns how many bytes Input wants to see at once before it can go on.
func (q *Machine) Need() int { return q.rx.Need() }

func (q *Machine) readerError(err error) {
	var e *mpa.Error
	if errors.As(err, &e) {
		q.mpaError(e)
	}
}

// onFPDU takes one verified FPDU through DDP and RDMAP.
func (q *Machine) onFPDU(f *mpa.FPDU) {
	b, n := q.ulpdu(f), f.Content.Len()
	if len(b) < n || !q.goesOn(b) {
		q.onULPDU(f, b, n)
	}
}

// onULPDU takes a ULPDU of n bytes through DDP and RDMAP. If b has less of it, that begins
// with the header, and the payload is apart.
func (q *Machine) onULPDU(f *mpa.FPDU, b []byte, n int) {
	first := !q.heard
	q.heard = true
	q.placing.End()
	q.sequel = ddp.Sequel{}
	q.nudgeAt, q.SendFrom = time.Time{}, time.Time{}
	var s ddp.Segment
	if err := s.Parse(b); err != nil {
		q.fail(&Failure{Code: rdmap.CodeDDPLocalCatastrophic, Offset: f.Offset, Reason: err.Error(), Err: err}, nil)
		return
	}
	if len(b) < n {
		s.Payload, s.Apart = nil, n-len(s.Raw)
	}
	q.traceReceived(f, &s)
	if err := ddp.CheckVersion(&s.Header, q.DDPVersion); err != nil {
		q.segmentError(f, &s, rdmap.FromDDP(err, rdmap.OpcodeOf(&s.Header)))
		return
	}
	if err := rdmap.CheckSegment(&s, q.RDMAPVersion); err != nil {
		q.refused(f, &s, err)
		return
	}
	if first && q.firstSegment(f, &s) {
		return
	}
	q.dispatch(f, &s)
}

// apartFrom is the length in bytes from which a ULPDU whose payload is to be placed stays
// apart: between the markers, from where it is placed at once. Others are moved together.
const apartFrom = 4096

// ulpdu returns the ULPDU of an FPDU, or only its header if its payload stays apart.
func (q *Machine) ulpdu(f *mpa.FPDU) []byte {
	if !f.Content.Whole() && f.Content.Len() >= apartFrom && q.placeable(f) {
		return q.rxHeader[:]
	}
	return f.Content.Squeeze()
}

// placeable reads the header of a segment to rxHeader, and reports whether the segment is
// of a message that has payload to be placed.
func (q *Machine) placeable(f *mpa.FPDU) bool {
	f.Content.CopyTo(q.rxHeader[:])
	s, err := ddp.Parse(q.rxHeader[:])
	info, known := rdmap.OpcodeOf(&s.Header).Info()
	return err == nil && known && info.Payload
}

// payload is what of a segment is to be placed.
func payload(f *mpa.FPDU, s *ddp.Segment) layout.Content {
	if s.Apart == 0 {
		return layout.Plain(s.Payload)
	}
	_, p := f.Content.Cut(len(s.Raw))
	return p
}

// segmentError ends the connection over a received segment.
func (q *Machine) segmentError(f *mpa.FPDU, s *ddp.Segment, err *rdmap.Error) {
	q.fail(&Failure{Code: err.Code, Offset: f.Offset, Reason: err.Field + ": " + err.Reason, Err: err}, s)
}

// refused ends the connection over a segment that no message of RDMAP has. A
// Terminate of the wrong form still is a Terminate: it is surfaced as
// invalid (RFC 5040, section 5.4) and not answered with another. [P36]
func (q *Machine) refused(f *mpa.FPDU, s *ddp.Segment, err *rdmap.Error) {
	if err.Op == rdmap.OpTerminate && err.Code == rdmap.CodeCatastrophicStream {
		q.onTerminate(s)
		return
	}
	q.segmentError(f, s, err)
}

// firstSegment judges the first segment of a connection and reports whether
// nothing is left to do. A peer-to-peer Initiator's is its Ready-to-Receive
// indication. A Write or Read takes the usual way and is invisible by itself; a
// Send must not use a receive buffer. [E09]
func (q *Machine) firstSegment(f *mpa.FPDU, s *ddp.Segment) bool {
	if q.Role != mpa.RoleResponder {
		return q.Layer != LayerMessages && q.tooEarly(f, s)
	}
	// RFC 6581, section 9.2: an Initiator that cannot use the connection sends a
	// Terminate in place of its RTR indication. [E10]
	if rdmap.OpcodeOf(&s.Header) == rdmap.OpTerminate {
		return false
	}
	kind := mpa.RTROf(rdmap.ZeroLength(s))
	if q.PeerToPeer && kind&q.RTR == 0 {
		q.stats.Odd.NotRTR++
		if q.cfg.StrictRTR && q.Layer != LayerMessages {
			q.fail(&Failure{Code: rdmap.CodeMPANoMatchingRTR, Offset: f.Offset,
				Reason: "the first message is not the RTR indication agreed on"}, nil)
			return true
		}
	}
	switch {
	case kind == mpa.RTRRead && q.IRD == 0:
		q.readWithoutIRD(f, s)
		return true
	case q.PeerToPeer && kind&q.RTR == mpa.RTRSend:
		q.hiddenSend(f, s)
		return true
	}
	return false
}

// tooEarly judges a Responder that sends before it can have received anything.
// siw does, and it does no harm, but the consumer may want to know. A
// Responder that got an Rtr frame may. [T03]
func (q *Machine) tooEarly(f *mpa.FPDU, s *ddp.Segment) bool {
	if q.tx.Offset() > 0 || q.Dialect == mpa.DialectRtr {
		return false
	}
	q.stats.Odd.Early++
	if q.cfg.StrictRTR {
		q.fail(&Failure{Code: rdmap.CodeCatastrophicStream, Offset: f.Offset,
			Reason: "the Responder sent before it received an FPDU"}, s)
	}
	return q.cfg.StrictRTR
}

// readWithoutIRD takes a zero-length Read as first message although no Reads
// were agreed on: it is an RTR indication, which some RNICs send without agreement.
func (q *Machine) readWithoutIRD(f *mpa.FPDU, s *ddp.Segment) {
	q.irrq.SetLimit(1)
	q.onReadRequest(f, s)
	q.irrq.SetLimit(0)
}

// hiddenSend takes a zero-length Send that is an RTR indication.
func (q *Machine) hiddenSend(f *mpa.FPDU, s *ddp.Segment) {
	queue := &q.queues[rdmap.QNSend]
	if err := queue.Check(s, 1, 0); err != nil {
		q.segmentError(f, s, rdmap.FromDDP(err, rdmap.OpSend))
		return
	}
	queue.Place(s)
}

// Indices of partial.
const (
	partialSend = iota
	partialWrite
)
