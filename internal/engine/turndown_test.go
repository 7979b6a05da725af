package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TurnDown gives the one FPDU that a QP connected with the same parameters sends,
// and its cause.
//
// Proves E05, E10, E11: the Terminate names layer 2, type 0 and the code.
func TestTurnDown(t *testing.T) {
	for _, code := range []mpa.Code{mpa.CodeLocalCatastrophic, mpa.CodeInsufficientIRD, mpa.CodeNoMatchingRTR} {
		for _, marked := range []bool{false, true} {
			p := initiator(t, func(s *setup) { s.TerminateCode, s.MarkersSend = code, marked })
			fpdu, f := TurnDown(p.Machine.Negotiated().Negotiated)
			if got := p.output(); !bytes.Equal(fpdu, got) {
				t.Errorf("%v: % x, a QP sends % x", code, fpdu, got)
			}
			if f.Error() != p.Machine.Cause().Error() {
				t.Errorf("%v: %v, a QP says %v", code, f, p.Machine.Cause())
			}
			frame, _, err := p.r.Next(fpdu)
			if err != nil {
				t.Fatal(err)
			}
			s, err := ddp.Parse(frame.ULPDU)
			if err != nil {
				t.Fatal(err)
			}
			term, err := rdmap.ParseTerminate(s.Payload)
			if err != nil || term.Code != rdmap.Code(0x2000|uint16(code)) {
				t.Errorf("%v: %v, %v", code, term, err)
			}
		}
	}
}

// Proves Q11: a Responder that has not received an FPDU sends none, not even that.
func TestTurnDownSilently(t *testing.T) {
	fpdu, f := TurnDown(mpa.Negotiated{Role: mpa.RoleResponder, TerminateCode: mpa.CodeNoMatchingRTR})
	if len(fpdu) > 0 || f == nil {
		t.Errorf("% x, %v", fpdu, f)
	}
}
