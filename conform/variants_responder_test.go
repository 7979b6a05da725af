package conform_test

import (
	"strings"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// zeroWrite is an FPDU that a peer sends out of turn.
func zeroWrite(crc bool) []byte {
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag = true, 1
	w := mpa.NewWriter(false, crc)
	return w.Append(nil, h.Append(nil))
}

// aReply is a Reply that a peer sends out of turn.
func aReply() []byte {
	return mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1})
}

// responderVariants break what RFC 5044 asks of a Responder's startup.
func responderVariants() []variant {
	return []variant{
		{name: "responder speaks before the Request", rule: "Q09", caughtBy: "startup/req-waits",
			fromPeer: say(aReply(), pass)},
		{name: "responder's first FPDU is too early", rule: "Q11", caughtBy: "rtr/req-silence",
			fromPeer: frame(nil, say(zeroWrite(true), pass))},
		{name: "responder's first FPDU is too early, client-server", rule: "Q11", caughtBy: "rtr/req-silence-a0",
			fromPeer: frame(nil, say(zeroWrite(true), pass))},
		{name: "Request not taken in pieces", rule: "Q13", caughtBy: "startup/req-split-key", toPeer: oneRead},
		{name: "header of a Request not taken in pieces", rule: "Q14",
			caughtBy: "startup/req-split-header", toPeer: oneRead},
		{name: "Request answered before its Private Data", rule: "Q08", caughtBy: "startup/req-pd-waits",
			fromPeer: say(aReply(), swallow)},
		{name: "Reply with the wrong key", rule: "Q01", caughtBy: "startup/req-whole",
			fromPeer: frame(func(f *mpa.StartupFields) { f.Key = "MPA ID rep Frame" })},
		{name: "Reply with a PD_Length that is too large", rule: "Q01", caughtBy: "startup/req-whole",
			fromPeer: frame(func(f *mpa.StartupFields) { f.PDLength = len(f.PrivateData) + 4 })},
		{name: "last byte of the key unchecked", rule: "Q02", caughtBy: "startup/req-key-last",
			toPeer: anyKey(mpa.KeyRequest, func(k string) bool { return k[:15] == mpa.KeyRequest[:15] })},
		{name: "first byte of the key unchecked", rule: "Q02", caughtBy: "startup/req-key-first",
			toPeer: anyKey(mpa.KeyRequest, func(k string) bool { return k[1:] == mpa.KeyRequest[1:] })},
		{name: "key without upper and lower case", rule: "Q02", caughtBy: "startup/req-key-case",
			toPeer: anyKey(mpa.KeyRequest, func(k string) bool { return strings.EqualFold(k, mpa.KeyRequest) })},
		{name: "Reply's key taken for a Request's", rule: "Q02", caughtBy: "startup/req-key-other",
			toPeer: anyKey(mpa.KeyRequest, func(k string) bool { return k == mpa.KeyReply })},
		{name: "answer to HTTP", rule: "Q02", caughtBy: "startup/req-key-http", toPeer: swallow,
			fromPeer: say(aReply(), pass)},
		{name: "reserved bits of the Request checked", rule: "Q06", caughtBy: "startup/req-res-1",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.Res() != 0 })},
		{name: "highest reserved bit of the Request checked", rule: "Q06", caughtBy: "startup/req-res-8",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.Res()&8 != 0 })},
		{name: "reserved bits in the Reply", rule: "Q06", caughtBy: "startup/req-res-sent",
			fromPeer: frame(func(f *mpa.StartupFields) { f.Res = 0x0f })},
		{name: "R of the Request checked", rule: "Q05", caughtBy: "startup/req-r", toPeer: closeIf(mpa.StartupFrame.R)},
		{name: "every revision taken for the highest", rule: "Q07", caughtBy: "startup/req-rev-3",
			toPeer: frame(func(f *mpa.StartupFields) { f.Rev = min(f.Rev, 2) })},
		{name: "revision 1 refused", rule: "E02", caughtBy: "startup/req-rev-1",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.Rev() == 1 })},
		{name: "S in revision 1 refused", rule: "Q06", caughtBy: "startup/req-rev-1-s",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.Rev() == 1 && f.S() })},
		{name: "Private Data cut off at 256 bytes", rule: "Q08", caughtBy: "startup/req-pd-257",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.PDLength() > 256 })},
		{name: "no room for 512 bytes of Private Data", rule: "Q08", caughtBy: "startup/req-pd-512",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return f.PDLength() >= 512 })},
		{name: "PD_Length unchecked", rule: "Q08", caughtBy: "startup/req-pd-513", toPeer: frame(cutPrivateData)},
		{name: "enhanced Request without its data accepted", rule: "E01", caughtBy: "startup/req-short-0",
			toPeer: frame(fillPrivateData)},
		{name: "enhanced Request with one byte of data accepted", rule: "E01", caughtBy: "startup/req-short-1",
			toPeer: frame(fillPrivateData)},
		{name: "FIN within the key unheard", rule: "Q15", caughtBy: "startup/req-fin-key", toPeer: deaf},
		{name: "FIN on an established connection unheard", rule: "Q15", caughtBy: "startup/req-close", toPeer: deaf},
		{name: "patience without end", rule: "Q12", caughtBy: "startup/req-silent", fromPeer: undying},
	}
}

// negotiatingResponders break what is negotiated.
func negotiatingResponders() []variant {
	noCRC := setup{offer: mpa.Offer{NoCRC: true}}
	return []variant{
		{name: "enhanced Request answered without S", rule: "E02", caughtBy: "negotiate/req-enhanced",
			fromPeer: frame(func(f *mpa.StartupFields) { f.S, f.Rev, f.PrivateData = false, 1, nil })},
		{name: "unenhanced Request answered with S", rule: "E02", caughtBy: "startup/req-rev-1",
			fromPeer: frame(func(f *mpa.StartupFields) { f.S, f.Rev, f.PrivateData = true, 2, make([]byte, 4) })},
		{name: "ORD above the Initiator's IRD", rule: "E04", caughtBy: "negotiate/req-depth-1",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.ORD++ }))},
		{name: "ORD in spite of an IRD of 0", rule: "E04", caughtBy: "negotiate/req-depth-ird-0",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.ORD = 128 }))},
		{name: "IRD 0x3FFF taken for a number", rule: "E06", caughtBy: "negotiate/req-depth-ird-3fff",
			toPeer: frame(enhanced(func(e *mpa.Enhanced) { e.IRD = min(e.IRD, 128) }))},
		{name: "ORD 0x3FFF taken for a number", rule: "E06", caughtBy: "negotiate/req-depth-ord-3fff",
			toPeer: frame(enhanced(func(e *mpa.Enhanced) { e.ORD = min(e.ORD, 128) }))},
		{name: "large depths refused", rule: "E14", caughtBy: "negotiate/req-depth-3ffe",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { e, _ := f.Enhanced(); return e.IRD > 128 })},
		{name: "A cleared in the Reply", rule: "E08", caughtBy: "negotiate/req-a1-write",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { *e = mpa.Enhanced{IRD: e.IRD, ORD: e.ORD} }))},
		{name: "no RTR indication named", rule: "E08", caughtBy: "negotiate/req-a1-none",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.B, e.C, e.D = false, false, false }))},
		{name: "A set in answer to A=0", rule: "E07", caughtBy: "negotiate/req-a0",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.A, e.C = true, true }))},
		{name: "B, C and D set in answer to A=0", rule: "E07", caughtBy: "negotiate/req-a0-bcd",
			fromPeer: frame(enhanced(func(e *mpa.Enhanced) { e.B, e.C, e.D = true, true, true }))},
		{name: "markers refused", rule: "F11", caughtBy: "negotiate/req-m",
			fromPeer: frame(func(f *mpa.StartupFields) { f.R = true })},
		{name: "markers forgotten", rule: "Q04", caughtBy: "negotiate/req-m-markers",
			toPeer: frame(func(f *mpa.StartupFields) { f.M = false })},
		{name: "markers off by four", rule: "F08", caughtBy: "negotiate/req-m-markers", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(shiftMarkers))},
		{name: "markers not asked for", rule: "F11", caughtBy: "negotiate/req-m-none",
			toPeer: frame(func(f *mpa.StartupFields) { f.M = true })},
		{name: "CRC in big-endian", rule: "F04", caughtBy: "negotiate/req-c-crc", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(swapCRC))},
		{name: "C of the Request overlooked", rule: "F14", caughtBy: "negotiate/req-c-crc", setup: noCRC,
			toPeer: frame(func(f *mpa.StartupFields) { f.C = false })},
		{name: "C of the Reply forgotten", rule: "F14", caughtBy: "negotiate/req-no-c-crc", toPeer: frame(nil),
			fromPeer: frame(nil, fpdus(dropCRC))},
		{name: "Request without C refused", rule: "F13", caughtBy: "negotiate/req-no-c",
			toPeer: closeIf(func(f mpa.StartupFrame) bool { return !f.C() })},
		{name: "RTR Write completes visibly", rule: "E09", caughtBy: "rtr/req-write",
			toPeer: frame(nil, fpdus(toSend)), fromPeer: frame(nil)},
		{name: "STag of an empty Write looked at", rule: "D23", caughtBy: "rtr/req-write-stag-0",
			toPeer: frame(nil, closeOnSTag0)},
		{name: "empty Read not answered", rule: "E09", caughtBy: "rtr/req-read", fromPeer: frame(nil, swallow)},
		{name: "RTR Send takes a receive", rule: "E09", caughtBy: "rtr/req-send",
			toPeer: frame(nil, fpdus(onlyFirst)), fromPeer: frame(nil)},
	}
}
