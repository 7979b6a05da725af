//go:build interop

package interop_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestProbeSiw: iwarp probe finds what docs/interop.md says of siw's Responder, which
// follows the Request: with peer_to_peer as without it, on one CPU and on two. None of
// its questions harms the kernel, asked for the first time or again.
func TestProbeSiw(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		slow bool // also ask without a Request, which takes 5 s
	}{
		{"unchanged", Options{}, true},
		{"two CPUs", Options{CPUs: 2}, false},
		{"peer_to_peer", Options{SIW: "peer_to_peer=1"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.o.Pcap = filepath.Join(t.TempDir(), "guest.pcap")
			r := &siwRig{Guest: Boot(t, c.o), pcap: c.o.Pcap}
			r.Serve(t, "rping -s -P")
			for range 2 {
				r.wantProbed(t, c.slow)
				r.wantSane(t)
			}
		})
	}
}

// wantProbed asks all questions and compares the answers.
func (r *siwRig) wantProbed(t *testing.T, slow bool) {
	t.Helper()
	before := len(r.connections(t, fmt.Sprint(rpingPort)))
	report, err := probe.Run(t.Context(), probe.Config{Addr: r.server(), Slow: slow, Dial: r.dialConn})
	testrig.Must(t, err)
	want := siwAnswers
	if slow {
		want += siwPatience
		// Long before the 10 s for which its Initiator would wait.
		if q := report.NoRequest; q.Milliseconds < 4900 || q.Milliseconds > 9900 {
			t.Errorf("without a Request, the connection ends after %v ms, want about 5100", q.Milliseconds)
		}
	}
	if d := gocmp.Diff(want, answers(report, r.connections(t, fmt.Sprint(rpingPort))[before:])); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
	if d := gocmp.Diff(siwConclusions, conclusions(report)); d != "" {
		t.Errorf("conclusions (-want +got):\n%s", d)
	}
}

// answers tells of each question what came of it. That the guest has reset a connection,
// QEMU's user networking does not tell: it is in the capture. Over the card it is told.
func answers(r *probe.Report, all []*connection) string {
	var b strings.Builder
	i := -1 // of the connection
	for _, q := range r.Questions {
		i++
		switch {
		case q.Outcome == probe.Closed && i < len(all):
			fmt.Fprintf(&b, "%s: %v by %s", q.Name, q.Outcome, all[i].ending(fromResponder))
		case q.Outcome == probe.Reset:
			fmt.Fprintf(&b, "%s: %v by RST", q.Name, probe.Closed)
		default:
			fmt.Fprintf(&b, "%s: %v", q.Name, q.Outcome)
		}
		if q.Answer != "" {
			fmt.Fprintf(&b, ": %s", frameNoise.ReplaceAllString(q.Answer, "$1$2"))
		}
		if q.Then != probe.None {
			fmt.Fprintf(&b, "; %v", q.Then)
		}
		b.WriteString("\n")
		if q.StillThere {
			i++ // the control question
		}
	}
	return b.String()
}

// ending says how the end that a direction comes from has ended it first.
func (c *connection) ending(d capture.Dir) string {
	h := &c.tcp.Halves[d]
	switch {
	case h.RST != 0 && (h.FIN == 0 || h.RST < h.FIN):
		return "RST"
	case h.FIN != 0:
		return "FIN"
	}
	return ""
}

// conclusions are the rest of a report.
func conclusions(r *probe.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dialects: %v\nkind: %v, %s\nmarkers: %s\nCRC: %s\n",
		r.Dialects, r.Kind, r.KindReason, r.Markers, r.CRC)
	for _, a := range r.RTR {
		fmt.Fprintf(&b, "RTR %s: %s\n", a.Offered, a.Answered)
	}
	for _, d := range r.Depths {
		fmt.Fprintf(&b, "depths %s: %s/%s\n", d.Asked, d.IRD, d.ORD)
	}
	fmt.Fprintf(&b, "private data: %d of %d\n", r.PrivateData.Most, r.PrivateData.Allowed)
	if a := r.FirstFPDUs.Plain; a != nil {
		fmt.Fprintf(&b, "zero-length Read: %v, CRC %s, DDP version %d, peer first: %v\n",
			a.Outcome, a.CRC, a.Version, a.First)
	}
	if len(r.Resembles) == 0 {
		return b.String() + "resembles nobody\n"
	}
	first := r.Resembles[0]
	fmt.Fprintf(&b, "echoes reserved bits: %v\nresembles: %s, %q, preset %q\n",
		r.EchoesReserved, first.Name, first.Differences, cmp.Or(r.Preset, "none"))
	return b.String()
}

// siwAnswers are siw's. It counts depths of 0x3FFF like others, repeats what it does not
// know of a Request's bits, takes 256 bytes of PD_Length, and resets a connection of
// which it has not read everything.
const siwAnswers = `revision 1: accepted: Rep C rev 1
revision 2, peer-to-peer: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
revision 2, client-server (A=0): accepted: Rep C S rev 2: ird 16 ord 16
revision 2 without S: accepted: Rep C rev 2
revision 3 with S: closed by FIN
revision 3 without S: closed by FIN
revision 0, markers: rejected: Rep C R rev 0
revision 1 with S: the Rtr frame: accepted: Rep C S rev 1
Start Key: silent
RTR write: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
RTR read: accepted: Rep C S rev 2: A ird 16 ord 16 rtr read
RTR send: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
RTR send|write|read: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
RTR none: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
IRD and ORD 0: accepted: Rep C S rev 2: A ird 0 ord 0 rtr write
IRD and ORD 1: accepted: Rep C S rev 2: A ird 1 ord 1 rtr write
IRD and ORD 16: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
IRD and ORD 16382: accepted: Rep C S rev 2: A ird 128 ord 128 rtr write
IRD and ORD not negotiated: accepted: Rep C S rev 2: A ird 128 ord 128 rtr write
markers: rejected: Rep C R S rev 2: ird 0 ord 0
no CRC: accepted: Rep S rev 2: A ird 16 ord 16 rtr write
reserved bits: accepted: Rep C S res 0xf rev 2: A ird 16 ord 16 rtr write
R in a Request: rejected: Rep C R S rev 2: A ird 16 ord 16 rtr write
508 bytes of private data: closed by RST
254 bytes of private data: closed by RST
127 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
190 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
222 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
238 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
246 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
250 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
252 bytes of private data: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
253 bytes of private data: closed by RST
a Request in two parts: accepted: Rep C S rev 2: A ird 16 ord 16 rtr write
a zero-length Read: accepted: Rep C S rev 2: A ird 16 ord 16 rtr read; response
an FPDU glued to the Request: closed by RST
`

const siwPatience = "no Request: closed by FIN\n"

const siwConclusions = `dialects: [RFC 6581 RFC 5044]
kind: non-permissive, it rejects revision 0 with markers
markers: asks for none, rejects a Request that does (M=1)
CRC: does without if the Request wants none (C=0)
RTR write: write
RTR read: read
RTR send: write
RTR send|write|read: write
RTR none: write
depths 0: 0/0
depths 1: 1/1
depths 16: 16/16
depths 16382: 128/128
depths not negotiated: 128/128
private data: 252 of 508
zero-length Read: response, CRC right, DDP version 1, peer first: false
echoes reserved bits: true
resembles: siw (Linux), [], preset "siw"
`
