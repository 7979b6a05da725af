package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TurnDown is for a connection that the startup frames have brought up and that
// cannot be used: n.TerminateCode says why. It returns the reason, and the FPDU of the
// Terminate that tells the peer: the only one that is sent. A Responder that has to
// wait for an FPDU sends none (RFC 5044, section 7.1.2).
func TurnDown(n mpa.Negotiated) (fpdu []byte, f *Failure) {
	segment, f := TurnDownSegment(n)
	if !n.SendFirst {
		return nil, f
	}
	w := mpa.NewWriter(n.MarkersSend, n.CRC)
	return w.Append(nil, segment, nil), f
}

// TurnDownSegment is TurnDown where DDP Segments travel by themselves.
func TurnDownSegment(n mpa.Negotiated) (segment []byte, f *Failure) {
	f = startupFailure(n.TerminateCode)
	return terminateSegment(n.DDPVersion, f.Code), f
}

// AbortSegment is the Terminate of a connection that was established, and is given up where the lower layer, which has
// DDP version 1, has no reset.
//
// RFC 5040, section 6.2: RDMAP Abortive Termination issues "a Terminate Message describing the reason".
func AbortSegment() []byte { return terminateSegment(1, rdmap.CodeLocalCatastrophic) }

func terminateSegment(version uint8, c rdmap.Code) []byte {
	h := rdmap.OpTerminate.Header(version)
	h.Last, h.MSN = true, ddp.FirstMSN
	t := rdmap.TerminateFor(c, nil)
	return t.Append(h.Append(nil))
}

func startupFailure(c mpa.Code) *Failure {
	return &Failure{Code: rdmap.CodeOfMPA(c), Reason: "the startup frames do not allow the connection"}
}
