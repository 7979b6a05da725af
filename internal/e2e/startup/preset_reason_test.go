package startup

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A reasonTest shows what becomes of a connection without one setting of a preset.
type reasonTest func(t *testing.T, p *iwarp.Preset)

// reasonTests are by preset and setting, or by setting alone.
var reasonTests = map[string]reasonTest{
	"siw Initiate.Dialect":        noDepths,
	"siw Initiate.RTR":            sendOnly,
	"siw Initiate.Markers":        markersAsked,
	"siw Accept.Markers":          markersAnswered,
	"siw Initiate.ClientServer":   siwFirst,
	"siw Dialects":                siwEchoes,
	"siw NoFallback":              longFallsBack,
	"siw SendEarly":               sendsEarly,
	"siw Nudge":                   nudges,
	"siw MaxPDLength":             longCrashes,
	"cxgb4 Initiate.Dialect":      fallsBack,
	"cxgb4 Initiate.RTR":          writeOnly,
	"cxgb4 Accept.AllRTR":         writeAnswered,
	"cxgb4 Dialects":              unagreedRead,
	"freebsd Initiate.Dialect":    resetOnRevision2,
	"irdma Initiate.Dialect":      fallsBack,
	"irdma Initiate.ClientServer": resetOnClientServer,
	"irdma Initiate.RTR":          sendOnly,
	"irdma Accept.RTR":            sendAnswered,
	"irdma MaxPDLength":           inTwoSegments,
	"qedr Initiate.Dialect":       noDepths,
	"qedr Initiate.RTR":           firstCommon,
	"windows-v1 Initiate.Dialect": resetOnRevision2,
	"windows-v1 Initiate.NoCRC":   resetWithoutCRC,
	"windows-v1 SMBDirect":        noSMBDepths,

	"Initiate.IRD": irdDialing,
	"Initiate.ORD": ordDialing,
	"Accept.IRD":   irdAccepting,
	"Accept.ORD":   ordAccepting,
	"Dialects":     otherDialects,
	"Nudge":        noNudges,
	"MaxPDLength":  tooLong,
}

// TestPresetReasons has, for every reason of every preset, a connection come up or
// fail as the reason says. All that is needed for it to come up is in TestPresetDials
// and TestPresetAccepts.
//
// Proves E02, E07, E08, E10, E12, E13, F13, Q10.
func TestPresetReasons(t *testing.T) {
	used := map[string]bool{}
	for _, p := range iwarp.Presets() {
		for _, r := range p.Reasons {
			name := p.Name + " " + r.Setting
			test, ok := reasonTests[name]
			if !ok {
				name = r.Setting
				test, ok = reasonTests[name]
			}
			if used[name] = true; !ok {
				t.Errorf("nothing shows why %s has %s: %s", p.Name, r.Setting, r.Why)
				continue
			}
			t.Run(p.Name+" "+r.Setting, func(t *testing.T) { test(t, &p) })
		}
	}
	for name := range reasonTests {
		if !used[name] {
			t.Errorf("there is no reason %s", name)
		}
	}
}

// wantMPACode wants the connection to have ended by our Terminate.
func wantMPACode(t *testing.T, err error, code rdmap.Code) {
	t.Helper()
	var term *iwarp.TerminateError
	if !errors.As(err, &term) || term.Code != code || term.Remote {
		t.Errorf("got %v, want our Terminate with %v", err, code)
	}
}

// wantTerminated wants the peer to have got a Terminate.
func wantTerminated(t *testing.T, err error, code rdmap.Code) {
	t.Helper()
	var term *peersim.Terminated
	if !errors.As(err, &term) || term.Code != code {
		t.Errorf("the peer: got %v, want a Terminate with %v", err, code)
	}
}

// wantStartupEnd wants the peer to have closed the connection on our frame.
func wantStartupEnd(t *testing.T, err error) {
	t.Helper()
	var s *mpa.StartupError
	if !errors.As(err, &s) || s.Failure != mpa.FailureClosed {
		t.Errorf("got %v, want a closed connection", err)
	}
}

// noDepths has revision 1 come up, but without an exchange of IRD and ORD.
func noDepths(t *testing.T, p *iwarp.Preset) {
	for dialect, enhanced := range map[mpa.Dialect]bool{0: true, mpa.DialectRFC5044: false} {
		n := respondAs(t, peerRow(t, p.Name)).talks(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{Dialect: dialect}})
		if n.Enhanced != enhanced || (n.PeerIRD != mpa.NoNegotiation) != enhanced {
			t.Errorf("dialect %v: negotiated %+v", dialect, n)
		}
	}
}

// sendOnly offers no RTR indication but a Send.
func sendOnly(t *testing.T, p *iwarp.Preset) {
	mismatched(t, p, mpa.RTRSend)
}

// writeOnly offers no RTR indication but a Write.
func writeOnly(t *testing.T, p *iwarp.Preset) {
	mismatched(t, p, mpa.RTRWrite)
}

// mismatched offers what the peer does not answer with.
func mismatched(t *testing.T, p *iwarp.Preset, offered mpa.RTR) {
	t.Helper()
	s := respondAs(t, peerRow(t, p.Name))
	_, err := s.dial(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{RTR: offered}})
	wantMPACode(t, err, rdmap.CodeMPANoMatchingRTR)
	if err := <-s.ended; err == nil {
		t.Error("the peer is content")
	}
}

// markersAsked asks siw for markers in a Request.
func markersAsked(t *testing.T, p *iwarp.Preset) {
	s := respondAs(t, peerRow(t, p.Name))
	_, err := s.dial(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{Markers: true}})
	var r *iwarp.RejectError
	if !errors.As(err, &r) || !rig.Contains(err, "markers") {
		t.Errorf("got %v, want a reject that names markers", err)
	}
	wantRefused(t, <-s.ended, peers.Rejects, "markers")
}

// markersAnswered asks siw for markers in a Reply.
func markersAnswered(t *testing.T, p *iwarp.Preset) {
	a := accepting{listen: iwarp.ListenConfig{Preset: p}, accept: iwarp.AcceptConfig{MPA: mpa.Answer{Markers: true}}}
	_, err := a.from(t, peerRow(t, p.Name), peersim.Consumer{})
	wantRefused(t, err, peers.Rejects, "markers")
}

// fallsBack has a peer that is set to revision 1.
func fallsBack(t *testing.T, p *iwarp.Preset) {
	b := peerRow(t, p.Name)
	b.Highest = 1
	if n := respondAs(t, b).talks(t, iwarp.Dialer{Preset: p}); !n.FellBack || n.Dialect != mpa.DialectRFC5044 {
		t.Errorf("negotiated %+v", n)
	}
}

// resetOnRevision2 starts with revision 2 all the same: without a fallback that is
// the end, and with one it costs a connection.
func resetOnRevision2(t *testing.T, p *iwarp.Preset) {
	s := respondAs(t, peerRow(t, p.Name))
	d := iwarp.Dialer{Preset: p, MPA: mpa.Offer{Dialect: mpa.DialectRFC6581}, NoFallback: true}
	_, err := s.dial(t, d)
	wantStartupEnd(t, err)
	wantRefused(t, <-s.ended, peers.Resets, "revision 2")
	d.NoFallback = false
	if n := s.talks(t, d); !n.FellBack || n.Dialect != mpa.DialectRFC5044 {
		t.Errorf("negotiated %+v", n)
	}
}

// resetOnClientServer sends irdma A=0.
func resetOnClientServer(t *testing.T, p *iwarp.Preset) {
	s := respondAs(t, peerRow(t, p.Name))
	_, err := s.dial(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{ClientServer: true}, NoFallback: true})
	wantStartupEnd(t, err)
	wantRefused(t, <-s.ended, peers.Resets, "A=0")
}

// sendAnswered names in a Reply what irdma has not offered.
func sendAnswered(t *testing.T, p *iwarp.Preset) {
	a := accepting{listen: iwarp.ListenConfig{Preset: p}, accept: iwarp.AcceptConfig{MPA: mpa.Answer{RTR: mpa.RTRSend}}}
	_, err := a.from(t, peerRow(t, p.Name), peersim.Consumer{})
	wantRefused(t, err, peers.Closes, "RTR")
}

// writeAnswered names in a Reply all that we take, which is more than cxgb4 has offered.
func writeAnswered(t *testing.T, p *iwarp.Preset) {
	a := accepting{listen: iwarp.ListenConfig{Preset: p}, accept: iwarp.AcceptConfig{MPA: mpa.Answer{AllRTR: true}}}
	_, err := a.from(t, peerRow(t, p.Name), peersim.Consumer{})
	wantRefused(t, err, peers.Closes, "RTR")
}

// firstCommon has qedr answer with all that it has in common with us.
func firstCommon(t *testing.T, p *iwarp.Preset) {
	for offered, want := range map[mpa.RTR]mpa.RTR{
		0:                                        mpa.RTRWrite,
		mpa.RTRSend | mpa.RTRRead:                mpa.RTRRead,
		mpa.RTRSend:                              mpa.RTRSend,
		mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead: mpa.RTRWrite,
	} {
		if n := respondAs(t, peerRow(t, p.Name)).talks(t,
			iwarp.Dialer{Preset: p, MPA: mpa.Offer{RTR: offered}}); n.RTR != want {
			t.Errorf("offered %v: sent %v, want %v", offered, n.RTR, want)
		}
	}
}

// resetWithoutCRC does without CRCs, which a peer that requires them does not.
func resetWithoutCRC(t *testing.T, p *iwarp.Preset) {
	s := respondAs(t, peerRow(t, p.Name))
	_, err := s.dial(t, iwarp.Dialer{Preset: p, MPA: mpa.Offer{NoCRC: true}})
	wantStartupEnd(t, err)
	wantRefused(t, <-s.ended, peers.Resets, "C=0")
}

// noSMBDepths leaves the depths out, in both roles.
func noSMBDepths(t *testing.T, p *iwarp.Preset) {
	without := *p
	without.SMBDirect = false
	s := respondAs(t, peerRow(t, p.Name))
	_, err := s.dial(t, iwarp.Dialer{Preset: &without})
	wantStartupEnd(t, err)
	wantRefused(t, <-s.ended, peers.Resets, "MS-SMBD")
	_, err = accepting{listen: iwarp.ListenConfig{Preset: &without}}.from(t, peerRow(t, p.Name), peersim.Consumer{})
	wantRefused(t, err, peers.Resets, "MS-SMBD")
}
