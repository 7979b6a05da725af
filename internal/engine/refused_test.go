package engine

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An Initiator that does not take our Reply sends a Terminate in place of a first
// message: what it may not have liked is part of the error, also where siw sends it
// without a CRC. Behind a first FPDU nothing is guessed.
func TestReplyDisliked(t *testing.T) {
	enhanced := func(s *setup) { s.CRC, s.Enhanced, s.PeerIRD, s.PeerORD = true, true, 3, 4 }
	offered := func(kinds mpa.RTR) func(*setup) { return func(s *setup) { s.OfferedRTR = kinds } }
	const (
		byRTR    = "the peer offers RTR by write and we have read"
		byDepths = "the peer asked for IRD 3 and ORD 4 and may not take our Reply's"
	)
	for _, c := range []struct {
		name   string
		change []func(*setup)
		later  bool
		want   string
	}{
		{"no common RTR", []func(*setup){enhanced, p2p(mpa.RTRRead), offered(mpa.RTRWrite)}, false, byRTR},
		{"a common RTR", []func(*setup){enhanced, p2p(mpa.RTRRead), offered(mpa.RTRWrite | mpa.RTRRead)}, false, byDepths},
		{"client-server", []func(*setup){enhanced}, false, byDepths},
		{"second FPDU", []func(*setup){enhanced, p2p(mpa.RTRRead), offered(mpa.RTRWrite)}, true, ""},
		{"revision 1", []func(*setup){func(s *setup) { s.CRC = true }}, false, ""},
	} {
		for _, crc := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				p := responder(t, c.change...)
				if c.later {
					p.send(write(1, 0, nil))
				}
				code, b := rdmap.CodeMPANoMatchingRTR, p.w.Append(nil, terminate(rdmap.CodeMPANoMatchingRTR).ulpdu())
				if !crc {
					code = rdmap.CodeMPACRC
					clear(b[len(b)-4:])
				}
				p.sendOctets(b)
				got := p.wantCause(code, crc).Reason
				if crc && got != c.want || !strings.HasSuffix(got, c.want) || c.want == "" && strings.Contains(got, "the peer") {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
	}
}

// A Terminate in answer to the Rtr frame: siw has taken that for a broken FPDU.
func TestTerminateForRtrFrame(t *testing.T) {
	for dialect, hint := range map[mpa.Dialect]bool{mpa.DialectRtr: true, mpa.DialectRFC5044: false} {
		p := initiator(t, func(s *setup) { s.Dialect = dialect })
		p.send(terminate(rdmap.CodeMPACRC))
		if f := p.wantCause(rdmap.CodeMPACRC, true); strings.Contains(f.Reason, "Rtr frame") != hint {
			t.Errorf("%v: %v", dialect, f)
		}
	}
}
