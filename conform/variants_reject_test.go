package conform_test

import (
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// rejectingVariants break rules of a Responder that rejects every Request.
func rejectingVariants() []variant {
	rejects := setup{rejects: true}
	rev0 := setup{rejects: true, dialect: mpa.DialectRevision0}
	reply := func(edit func(*mpa.StartupFields)) variant { return variant{fromPeer: frame(edit)} }
	return []variant{
		reply(func(f *mpa.StartupFields) { f.R = false }).named("rejection without R", "Q05", "reject/req").of(rejects),
		reply(func(f *mpa.StartupFields) { f.Res = 4 }).named("rejection with a reserved bit", "Q10",
			"reject/req").of(rejects),
		reply(func(f *mpa.StartupFields) { f.Rev = 1 }).named("rejection of another revision",
			"Q10", "reject/req").of(rev0),
		reply(func(f *mpa.StartupFields) { f.M = false }).named("rejection of revision 0 without M", "N05",
			"reject/req-rev-0").of(rev0),
		reply(func(f *mpa.StartupFields) { f.S, f.PrivateData = false, nil }).
			named("rejection that is not enhanced", "E01", "reject/req-enhanced").of(rejects),
		reply(enhanced(func(e *mpa.Enhanced) { e.A = false })).named("rejection with A=0", "E08",
			"reject/req-enhanced").of(rejects),
		variant{fromPeer: frame(nil, say(zeroWrite(true), swallow))}.named("FPDU after a rejection", "Q10",
			"reject/req-no-fpdu").of(rejects),
		variant{toPeer: frame(nil, swallow), fromPeer: frame(nil, say(zeroWrite(true), swallow))}.
			named("Terminate for streaming data", "Q10", "reject/req-data").of(rejects),
		variant{fromPeer: frame(nil, resetAtEnd)}.named("RST after a rejection", "Q15", "reject/req-fin").of(rejects),
		variant{toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.PDLength() > 256 })}.
			named("long Request closed in place of a rejection", "Q08", "reject/req-pd").of(rejects),
	}
}

// delayedVariants break rules of a startup after streaming data.
func delayedVariants() []variant {
	responder, initiator := setup{delayed: true}, setup{delayed: true, role: mpa.RoleInitiator}
	request := script.Request(mpa.DialectRFC6581, 4).Bytes()
	return []variant{
		variant{fromPeer: after(len(streaming.Responder), say(zeroWrite(true), swallow))}.
			named("FPDU after the last streaming message", "Q09", "delayed/req-waits").of(responder),
		variant{toPeer: after(len(streaming.Initiator), shut)}.named("no startup after streaming data", "Q14",
			"delayed/req").of(responder),
		variant{toPeer: wholeLine}.named("streaming message wanted in one segment", "Q13",
			"delayed/req-bytes").of(responder),
		variant{fromPeer: after(len(streaming.Initiator), say(request, swallow))}.
			named("Request before the last streaming message", "K06", "delayed/rep-waits").of(initiator),
		variant{toPeer: wholeLine}.named("last streaming message wanted in one segment", "K06",
			"delayed/rep-bytes").of(initiator),
		variant{fromPeer: after(len(streaming.Initiator), swallow)}.named("Request never comes", "K06",
			"delayed/rep").of(initiator),
	}
}

// after carries n bytes, and goes on with next.
func after(n int, next way) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		if b, err := src.Bytes(n, forever); err == nil {
			_, _ = dst.Write(b)
		}
		next(w, src, dst)
	}
}

// wholeLine closes the connection unless the first segment is a whole line.
func wholeLine(w *wire, src *script.Link, dst *testrig.Conn) {
	_ = src.Receive(forever)
	if b := src.Received(); len(b) > 0 && b[len(b)-1] != '\n' {
		shut(w, src, dst)
		return
	}
	pass(w, src, dst)
}
