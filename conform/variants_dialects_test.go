package conform_test

import (
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

const (
	aStartKey = mpa.KeyStart + "\x40"
	letters   = "MPA ID Rtr Frame"
)

// asIs leaves a key as it is.
func asIs(b []byte) []byte { return b }

// bits sets and clears bits of a Start Key's last byte.
func bits(set, clear byte) func([]byte) []byte {
	return func(b []byte) []byte {
		b[15] = b[15]&^clear | set
		return b
	}
}

// checkedKey closes the connection on a Start Key of which bad is true.
func checkedKey(bad func(mpa.StartKey) bool) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		if src.Need(mpa.StartKeyLen, forever) == nil && bad(mpa.StartKey(src.Received()[:mpa.StartKeyLen])) {
			shut(w, src, dst)
			return
		}
		pass(w, src, dst)
	}
}

// responderDialects break the dialects before and beside the RFCs.
func responderDialects() []variant {
	rtr, rdmac, active := setup{dialect: mpa.DialectRtr}, setup{dialect: mpa.DialectRevision0},
		setup{dialect: mpa.DialectStartKey}
	anRtr := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1})
	return []variant{
		{name: "S not answered", rule: "T01", caughtBy: "rtr2007/req", setup: rtr,
			fromPeer: frame(func(f *mpa.StartupFields) { f.S = false })},
		{name: "S in answer to none", rule: "T01", caughtBy: "rtr2007/req-plain", setup: rtr,
			fromPeer: frame(func(f *mpa.StartupFields) { f.S = true })},
		{name: "FPDU before the Rtr frame", rule: "T02", caughtBy: "rtr2007/rtr-waits", setup: rtr,
			fromPeer: frame(nil, say(zeroWrite(true), pass))},
		{name: "Rtr in letters refused", rule: "T02", caughtBy: "rtr2007/rtr-letters", setup: rtr,
			toPeer: frame(nil, closeIf(func(f mpa.StartupFrame) bool { return f.Key() == letters }))},
		{name: "M of the Rtr frame checked", rule: "T02", caughtBy: "rtr2007/rtr-m", setup: rtr,
			toPeer: frame(nil, closeIf(mpa.StartupFrame.M))},
		{name: "S of the Rtr frame checked", rule: "T02", caughtBy: "rtr2007/rtr-r", setup: rtr,
			toPeer: frame(nil, closeIf(mpa.StartupFrame.S))},
		{name: "Rtr frame not awaited", rule: "T01", caughtBy: "rtr2007/rtr-missing", setup: rtr,
			toPeer: frame(nil, say(anRtr, pass))},
		{name: "Rtr frame's key unchecked", rule: "T02", caughtBy: "rtr2007/rtr-key", setup: rtr,
			toPeer: frame(nil, frame(func(f *mpa.StartupFields) { f.Key = mpa.KeyRtr }))},
		{name: "Rtr frame's revision unchecked", rule: "Q07", caughtBy: "rtr2007/rtr-rev", setup: rtr,
			toPeer: frame(nil, frame(func(f *mpa.StartupFields) { f.Rev = 1 }))},

		{name: "revision 0 answered without M", rule: "N05", caughtBy: "revision0/req", setup: rdmac,
			fromPeer: frame(func(f *mpa.StartupFields) { f.M = false })},
		{name: "revision 0 answered without C", rule: "N05", caughtBy: "revision0/req", setup: rdmac,
			fromPeer: frame(func(f *mpa.StartupFields) { f.C = false })},
		{name: "no markers in revision 0", rule: "N05", caughtBy: "revision0/req-no-m", setup: rdmac,
			toPeer: frame(nil), fromPeer: frame(nil, fpdus(noMarkers))},
		{name: "version 1 in revision 0", rule: "N02", caughtBy: "revision0/version", setup: rdmac, toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(version1))},
		{name: "revision 0 answered without markers", rule: "N05", caughtBy: "startup/req-rev-0",
			fromPeer: frame(func(f *mpa.StartupFields) { f.M = false })},
		{name: "revision 0 taken for 1", rule: "N04", caughtBy: "startup/req-rev-0",
			toPeer: frame(func(f *mpa.StartupFields) { f.Rev = 1 })},

		{name: "Active side speaks first", rule: "K02", caughtBy: "startkey/active-waits", setup: active,
			fromPeer: say([]byte(aStartKey), swallow)},
		{name: "Active side's FPDU too early", rule: "K03", caughtBy: "startkey/active-silence", setup: active,
			fromPeer: key(mpa.StartKeyLen, asIs, say(zeroWrite(true), pass))},
		{name: "Start Key of revision 1", rule: "K05", caughtBy: "startkey/active", setup: active,
			fromPeer: key(mpa.StartKeyLen, bits(1, 0))},
		{name: "reserved bits in the Start Key", rule: "K05", caughtBy: "startkey/active-res", setup: active,
			fromPeer: key(mpa.StartKeyLen, bits(0x10, 0))},
		{name: "reserved bits of the Start Key checked", rule: "K05", caughtBy: "startkey/active-res", setup: active,
			toPeer: checkedKey(func(k mpa.StartKey) bool { return k.Res() != 0 })},
		{name: "revision of the Start Key unchecked", rule: "K05", caughtBy: "startkey/active-rev-1", setup: active,
			toPeer: key(mpa.StartKeyLen, bits(0, 0x0f))},
		{name: "top bit of the Start Key's revision unchecked", rule: "K05", caughtBy: "startkey/active-rev-8",
			setup: active, toPeer: key(mpa.StartKeyLen, bits(0, 0x08))},
		{name: "last byte of the Start Key unchecked", rule: "K04", caughtBy: "startkey/active-last", setup: active,
			toPeer: anyKey(mpa.KeyStart, func(k string) bool { return k[:14] == mpa.KeyStart[:14] })},
		{name: "Active side's markers forgotten", rule: "F11", caughtBy: "startkey/active-m", setup: active,
			toPeer: key(mpa.StartKeyLen, bits(0, 0x80))},
	}
}

// initiatorDialects do the same as Initiator.
func initiatorDialects() []variant {
	rtr := setup{role: mpa.RoleInitiator, dialect: mpa.DialectRtr}
	rdmac := setup{role: mpa.RoleInitiator, dialect: mpa.DialectRevision0}
	passive := setup{role: mpa.RoleInitiator, dialect: mpa.DialectStartKey}
	return []variant{
		{name: "S in the Rtr frame", rule: "T02", caughtBy: "rtr2007/rep", setup: rtr,
			fromPeer: frame(nil, frame(func(f *mpa.StartupFields) { f.S = true }))},
		{name: "Rtr frame in letters", rule: "T02", caughtBy: "rtr2007/rep", setup: rtr,
			fromPeer: frame(nil, frame(func(f *mpa.StartupFields) { f.Key = letters }))},
		{name: "Rtr frame with private data", rule: "T02", caughtBy: "rtr2007/rep", setup: rtr,
			fromPeer: frame(nil, frame(func(f *mpa.StartupFields) { f.PrivateData = goodEnhanced[:] }))},
		{name: "no Rtr frame", rule: "T01", caughtBy: "rtr2007/rep", setup: rtr,
			toPeer: frame(func(f *mpa.StartupFields) { f.S = false })},
		{name: "C in the Rtr frame against the Reply", rule: "T05", caughtBy: "rtr2007/rep-no-c", setup: rtr,
			fromPeer: frame(nil, frame(func(f *mpa.StartupFields) { f.C = true }))},
		{name: "Rtr frame after a plain Reply", rule: "T04", caughtBy: "rtr2007/rep-plain", setup: rtr,
			toPeer: frame(func(f *mpa.StartupFields) { f.S = true })},

		{name: "Request of revision 0 without M", rule: "N05", caughtBy: "revision0/rep-request", setup: rdmac,
			fromPeer: frame(func(f *mpa.StartupFields) { f.M = false })},
		{name: "Initiator's markers forgotten in revision 0", rule: "N05", caughtBy: "revision0/rep-works",
			setup: rdmac, toPeer: frame(nil), fromPeer: frame(nil, fpdus(noMarkers))},
		{name: "M=0 and C=0 taken in revision 0", rule: "N05", caughtBy: "revision0/rep-no-m", setup: rdmac,
			toPeer: frame(func(f *mpa.StartupFields) { f.M, f.C = true, true })},
		{name: "revision 1 taken for 0", rule: "N04", caughtBy: "revision0/rep-rev-1", setup: rdmac,
			toPeer: frame(func(f *mpa.StartupFields) { f.Rev, f.M = 0, true })},
		{name: "Initiator's version 1 in revision 0", rule: "N02", caughtBy: "revision0/rep-works", setup: rdmac,
			toPeer: frame(nil), fromPeer: frame(nil, fpdus(version1))},

		{name: "Passive side's revision 1", rule: "K05", caughtBy: "startkey/passive", setup: passive,
			fromPeer: key(mpa.StartKeyLen, bits(1, 0))},
		{name: "Passive side's wrong Start Key", rule: "K01", caughtBy: "startkey/passive", setup: passive,
			fromPeer: key(mpa.StartKeyLen, func([]byte) []byte { return []byte("MPA Ident frame\x40") })},
		{name: "Passive side's FPDU too early", rule: "K03", caughtBy: "startkey/passive-waits", setup: passive,
			fromPeer: key(mpa.StartKeyLen, asIs, say(zeroWrite(true), pass))},
		{name: "Passive side checks reserved bits", rule: "K05", caughtBy: "startkey/passive-res", setup: passive,
			toPeer: checkedKey(func(k mpa.StartKey) bool { return k.Res() != 0 })},
		{name: "Passive side does not check the last byte", rule: "K04",
			caughtBy: "startkey/passive-last", setup: passive,
			toPeer: anyKey(mpa.KeyStart, func(k string) bool { return k[:14] == mpa.KeyStart[:14] })},
		{name: "Passive side does not check the revision", rule: "K05", caughtBy: "startkey/passive-rev-1",
			setup: passive, toPeer: key(mpa.StartKeyLen, bits(0, 0x0f))},
		{name: "Passive side's markers forgotten", rule: "F11", caughtBy: "startkey/passive-works-m", setup: passive,
			toPeer: key(mpa.StartKeyLen, bits(0, 0x80))},
	}
}
