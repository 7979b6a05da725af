package conform_test

import (
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

var anInitiator = setup{role: mpa.RoleInitiator}

// initiatorVariants break what RFC 5044 asks of an Initiator's startup.
func initiatorVariants() []variant {
	return asInitiators(anInitiator, []variant{
		{name: "Request with the wrong key", rule: "Q01", caughtBy: "startup/rep-request",
			fromPeer: frame(func(f *mpa.StartupFields) { f.Key = "MPA ID req Frame" })},
		{name: "R in the Request", rule: "Q05", caughtBy: "startup/rep-request",
			fromPeer: frame(func(f *mpa.StartupFields) { f.R = true })},
		{name: "reserved bits in the Request", rule: "Q06", caughtBy: "startup/rep-request",
			fromPeer: frame(func(f *mpa.StartupFields) { f.Res = 1 })},
		{name: "Request with too much Private Data", rule: "Q08", caughtBy: "startup/rep-request",
			fromPeer: frame(func(f *mpa.StartupFields) {
				f.PrivateData = append(f.PrivateData,
					make([]byte, 512)...)
			})},
		{name: "Initiator does not wait for the Reply", rule: "Q09", caughtBy: "startup/rep-patience",
			fromPeer: frame(nil, say(zeroWrite(true), pass))},
		{name: "Reply not taken in pieces", rule: "Q13", caughtBy: "startup/rep-split-key", toPeer: oneRead},
		{name: "Reply's Private Data not waited for", rule: "Q08", caughtBy: "startup/rep-pd-waits", toPeer: impatient},
		{name: "last byte of the Reply's key unchecked", rule: "Q02", caughtBy: "startup/rep-key-last",
			toPeer: anyKey(mpa.KeyReply, func(k string) bool { return k[:15] == mpa.KeyReply[:15] })},
		{name: "Reply's key without upper and lower case", rule: "Q02", caughtBy: "startup/rep-key-case",
			toPeer: anyKey(mpa.KeyReply, func(k string) bool { return strings.EqualFold(k, mpa.KeyReply) })},
		{name: "Initiator/Initiator startup unnoticed", rule: "Q03", caughtBy: "startup/rep-key-other",
			toPeer: anyKey(mpa.KeyReply, func(k string) bool { return k == mpa.KeyRequest })},
		{name: "reserved bits of the Reply checked", rule: "Q06", caughtBy: "startup/rep-res-2",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.Res() != 0 })},
		{name: "revision of the Reply unchecked", rule: "Q07", caughtBy: "startup/rep-rev-3",
			toPeer: frame(func(f *mpa.StartupFields) { f.Rev, f.S, f.PrivateData = 2, true, goodEnhanced[:] })},
		{name: "no room for 512 bytes of the Reply", rule: "Q08", caughtBy: "startup/rep-pd-512",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.PDLength() >= 512 })},
		{name: "Reply's PD_Length unchecked", rule: "Q08", caughtBy: "startup/rep-pd-513",
			toPeer: frame(cutPrivateData)},
		{name: "enhanced Reply without its data taken", rule: "E01", caughtBy: "startup/rep-short-0",
			toPeer: frame(func(f *mpa.StartupFields) { f.PrivateData = goodEnhanced[:] })},
		{name: "rejection overlooked", rule: "Q10", caughtBy: "startup/rep-reject",
			toPeer: frame(func(f *mpa.StartupFields) { f.R = false })},
		{name: "rejection with private data overlooked", rule: "Q05", caughtBy: "startup/rep-reject-pd",
			toPeer: frame(func(f *mpa.StartupFields) { f.R = false })},
		{name: "FIN in place of the Reply unheard", rule: "Q15", caughtBy: "startup/rep-fin", toPeer: deaf},
		{name: "Responder's FIN unheard", rule: "Q15", caughtBy: "startup/rep-close", toPeer: deaf},
		{name: "wait for the Reply without end", rule: "Q12", caughtBy: "startup/rep-silent", fromPeer: undying},
	})
}

// asInitiators gives a setup to variants that have none.
func asInitiators(s setup, variants []variant) []variant {
	for i := range variants {
		if variants[i].setup.role == 0 {
			variants[i].setup = s
		}
	}
	return variants
}

// negotiatingInitiators break what is negotiated.
func negotiatingInitiators() []variant {
	clientServer := setup{role: mpa.RoleInitiator, offer: mpa.Offer{ClientServer: true}}
	noCRC := setup{role: mpa.RoleInitiator, offer: mpa.Offer{NoCRC: true}}
	return asInitiators(anInitiator, []variant{
		{name: "M of the Reply overlooked", rule: "Q04", caughtBy: "negotiate/rep-m",
			toPeer: frame(func(f *mpa.StartupFields) { f.M = false })},
		{name: "Initiator's markers off by four", rule: "F08", caughtBy: "negotiate/rep-m", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(shiftMarkers))},
		{name: "markers that nobody has asked for", rule: "F11", caughtBy: "negotiate/rep-no-m",
			toPeer: frame(func(f *mpa.StartupFields) { f.M = true })},
		{name: "Initiator's CRC in big-endian", rule: "F04", caughtBy: "negotiate/rep-c", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(swapCRC))},
		{name: "C of the Reply overlooked", rule: "F14", caughtBy: "negotiate/rep-c", setup: noCRC,
			toPeer: frame(func(f *mpa.StartupFields) { f.C = false })},
		{name: "C of one's own Request forgotten", rule: "F14", caughtBy: "negotiate/rep-no-c", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(dropCRC))},
		{name: "C with A=0", rule: "E07", caughtBy: "negotiate/rep-request", setup: clientServer,
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.C = true }))},
		{name: "A=1 without an RTR indication", rule: "E07", caughtBy: "negotiate/rep-request",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.B, e.C, e.D = false, false, false }))},
		{name: "Request without its enhanced data", rule: "E01", caughtBy: "negotiate/rep-request",
			fromPeer: frame(func(f *mpa.StartupFields) { f.PrivateData = nil })},
		{name: "IRD of 0 refused", rule: "E04", caughtBy: "negotiate/rep-ird-0",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { e, _ := f.Enhanced(); return e.IRD == 0 })},
		{name: "0x3FFF refused", rule: "E06", caughtBy: "negotiate/rep-3fff",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { e, _ := f.Enhanced(); return e.IRD == mpa.NoNegotiation })},
		{name: "IRD not raised", rule: "E04", caughtBy: "negotiate/rep-ord-more",
			toPeer: frame(enhanced(func(e *mpa.Enhanced) { e.ORD = 1 }))},
		{name: "large ORD closes the connection", rule: "E05", caughtBy: "negotiate/rep-ord-3ffe",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { e, _ := f.Enhanced(); return e.ORD > 128 })},
		{name: "no RTR indication", rule: "E09", caughtBy: "rtr/rep-write", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(allButFirst))},
		{name: "RTR indication of another kind", rule: "E09", caughtBy: "rtr/rep-read",
			toPeer: frame(enhanced(func(e *mpa.Enhanced) { e.C, e.D = true, false }))},
		{name: "RTR indication with data", rule: "E09", caughtBy: "rtr/rep-write", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(longer))},
		{name: "RTR indication without a match", rule: "E10", caughtBy: "rtr/rep-none",
			toPeer: frame(enhanced(func(e *mpa.Enhanced) { e.C = true }))},
		{name: "wrong code for no match", rule: "E10", caughtBy: "rtr/rep-none", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(code5))},
		{name: "RTR indication in the client-server model", rule: "E07", caughtBy: "rtr/rep-a0", setup: clientServer,
			toPeer: frame(nil), fromPeer: frame(nil, say(zeroWrite(true), pass))},
		{name: "second attempt enhanced, too", rule: "E13", caughtBy: "fallback/rep-close", fromPeer: frame(reEnhance)},
		{name: "enhanced Reply to an unenhanced Request taken", rule: "E02", caughtBy: "negotiate/rep-enhanced",
			setup:  setup{role: mpa.RoleInitiator, dialect: mpa.DialectRFC5044},
			toPeer: frame(func(f *mpa.StartupFields) { f.S, f.Rev, f.PrivateData = false, 1, nil })},
	})
}

// reEnhance makes an enhanced Request of an unenhanced one.
func reEnhance(f *mpa.StartupFields) {
	if f.Rev == 1 {
		f.Rev, f.S, f.PrivateData = 2, true, goodEnhanced[:]
	}
}
