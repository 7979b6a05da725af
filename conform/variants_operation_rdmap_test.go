package conform_test

import (
	"bytes"
	"encoding/binary"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// rdmapVariants break what RFC 5040 asks of control fields and Sends.
func rdmapVariants() []variant {
	rsv := func(seg *ddp.Segment, _ rdmap.Opcode) bool { return seg.RsvdULP&0x30 != 0 }
	invalidate := toEndpoint(on(rdmap.OpSendInvalidate,
		func(seg *ddp.Segment) { seg.RsvdULP = rdmap.Control(1, rdmap.OpSend) }))
	return []variant{
		toEndpoint(when(a(rdmap.OpReadRequest), func(seg *ddp.Segment) {
			seg.RsvdULP = rdmap.Control(1,
				rdmap.OpReadRequest)
		})).
			named("RDMAP version unchecked", "P05", "rdmap/responder-version-plus-2-read"),
		fromEndpoint(code(rdmap.CodeCatastrophicStream)).named("wrong version called catastrophic", "P05",
			"rdmap/initiator-version-plus-1-read").of(anInitiator),
		toEndpoint(drop(a(0x0f))).named("opcode 0xF passed over", "P07", "rdmap/responder-opcode-f"),
		fromEndpoint(code(rdmap.CodeInvalidVersion)).named("unknown opcode called another version", "P07",
			"rdmap/responder-opcode-c"),
		toEndpoint(dislike(rsv)).named("reserved bits of RDMAP looked at", "P04", "rdmap/responder-rsv-read"),
		fromEndpoint(on(rdmap.OpSend, func(seg *ddp.Segment) { seg.RsvdULP |= 0x10 })).
			named("reserved bits of RDMAP set", "P04", "rdmap/responder-sends"),
		fromEndpoint(on(rdmap.OpSend, func(seg *ddp.Segment) { seg.ULP = 1 })).
			named("Invalidate STag in a Send", "P08", "rdmap/responder-sends"),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool { return op == rdmap.OpSend && seg.ULP != 0 })).
			named("Invalidate STag of a Send looked at", "P08", "rdmap/initiator-invalidate-send").of(anInitiator),
		toEndpoint(dislike(a(rdmap.OpSendSE))).named("Send with Solicited Event refused", "P06",
			"rdmap/responder-send-se"),
		invalidate.named("unknown STag to be invalidated passed over", "P35", "rdmap/responder-invalidate-unknown"),
		invalidate.named("STag not invalidated", "P34", "rdmap/initiator-invalidate").of(anInitiator),
		fromEndpoint(swapped(a(rdmap.OpWrite))).named("Send ahead of the Write before it", "P20",
			"rdmap/responder-writes"),
		fromEndpoint(on(rdmap.OpWrite, func(seg *ddp.Segment) { seg.TO = 0 })).
			named("Write to TO 0", "P18", "rdmap/responder-writes"),
		fromEndpoint(on(rdmap.OpWrite, func(seg *ddp.Segment) { seg.STag++ })).
			named("Write to another STag", "D15", "rdmap/responder-writes"),
	}
}

// readVariants break what RFC 5040 asks of Reads.
func readVariants() []variant {
	response := func(change func(seg *ddp.Segment)) variant {
		return fromEndpoint(on(rdmap.OpReadResponse, change))
	}
	// field changes a field of four or eight bytes of Read Requests, by its offset.
	request := func(change func(r []byte)) edit {
		return on(rdmap.OpReadRequest, func(seg *ddp.Segment) { change(seg.Payload) })
	}
	return []variant{
		fromEndpoint(on(rdmap.OpReadRequest, func(seg *ddp.Segment) { seg.Payload = seg.Payload[:27] })).
			named("Read Request of 27 bytes", "P10", "rdmap/responder-reads"),
		fromEndpoint(request(func(r []byte) { r[27]++ })).named("Read Request from another TO", "P18",
			"rdmap/responder-reads"),
		response(func(seg *ddp.Segment) { seg.STag ^= 1 }).named("Read Response to another STag", "P11",
			"rdmap/responder-read-sink"),
		response(func(seg *ddp.Segment) { seg.TO++ }).named("Read Response to another TO", "P11",
			"rdmap/initiator-responses").of(anInitiator),
		response(func(seg *ddp.Segment) { seg.Payload = seg.Payload[:max(len(seg.Payload), 1)-1] }).
			named("Read Response short", "P21", "rdmap/initiator-responses").of(anInitiator),
		response(func(seg *ddp.Segment) { seg.Last = false }).named("Read Response without L", "P21",
			"rdmap/initiator-responses").of(anInitiator),
		fromEndpoint(swapped(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpReadResponse &&
				seg.STag != 1
		})).named("Read Responses out of order", "P23", "rdmap/responder-read-order").of(manyReads),
		variant{toPeer: frame(enhanced(func(e *mpa.Enhanced) { e.IRD = max(e.IRD, 1) }))}.
			named("more Reads than the IRD", "P46", "rdmap/responder-ord-0"),
		toEndpoint(request(func(r []byte) { clear(r[12:16]) })).named("source STag of a Read unchecked", "P24",
			"rdmap/responder-read-stag-0"),
		toEndpoint(request(func(r []byte) { binary.BigEndian.PutUint64(r[20:], binary.BigEndian.Uint64(r[20:])-1) })).
			named("bounds of a Read off by one", "P25", "rdmap/initiator-read-end").of(anInitiator),
		fromEndpoint(code(rdmap.CodeInvalidSTag)).named("bounds of a Read called an STag", "P25",
			"rdmap/initiator-read-end-across").of(anInitiator),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpReadRequest && bytes.Equal(seg.Payload[16:20], []byte{0xff, 0xff, 0xff, 0xff})
		})).named("source STag of an empty Read checked", "P26", "rdmap/responder-read-source"),
		toEndpoint(on(rdmap.OpReadRequest, func(seg *ddp.Segment) {
			seg.Payload = append(seg.Payload,
				make([]byte, 28)...)[:28]
		})).
			named("length of a Read Request unchecked", "P10", "rdmap/responder-read-length-27"),
		toEndpoint(wholeResponse).named("Read complete at half", "P28", "rdmap/responder-response-waits"),
		toEndpoint(drop(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpReadResponse && len(seg.Payload) == 4
		})).
			named("Read Response that was not asked for passed over", "P07", "rdmap/responder-response-unasked"),
	}
}

// extensionVariants break what RFC 7306 asks.
func extensionVariants() []variant {
	passed := func(op rdmap.Opcode) variant { return toEndpoint(drop(a(op))) }
	answered := func(op rdmap.Opcode) variant {
		return toEndpoint(on(op, func(seg *ddp.Segment) {
			seg.RsvdULP, seg.Payload = rdmap.Control(1, rdmap.OpReadRequest), make([]byte, rdmap.ReadRequestLen)
		}))
	}
	return []variant{
		passed(rdmap.OpAtomicRequest).named("Atomic Request passed over", "X03", "rdmap/responder-atomic-stag-unknown"),
		answered(rdmap.OpAtomicRequest).named("Atomic Request answered", "X03", "rdmap/responder-atomic-stag-0"),
		fromEndpoint(code(rdmap.CodeDDPInvalidSTag)).named("Atomic Request refused by DDP", "X03",
			"rdmap/responder-atomic-stag-0"),
		fromEndpoint(on(rdmap.OpTerminate, func(seg *ddp.Segment) {
			seg.Payload = append(seg.Payload,
				make([]byte, 28)...)
			seg.Payload[2] |= 0x20
		})).
			named("Atomic Request told of as a Read Request", "X03",
				"rdmap/initiator-atomic-stag-unknown").of(anInitiator),
		answered(rdmap.OpAtomicRequest).named("Atomic Request without the right answered", "X03",
			"rdmap/initiator-atomic-rights").of(anInitiator),
		fromEndpoint(code(rdmap.CodeInvalidVersion)).named("Atomic Request after the end called another version", "X03",
			"rdmap/initiator-atomic-after-end").of(anInitiator),
		answered(rdmap.OpAtomicRequest).named("unknown AOpCode taken", "X03", "rdmap/responder-atomic-aopcode-1"),
		passed(rdmap.OpAtomicRequest).named("length of an Atomic Request unchecked", "X03",
			"rdmap/responder-atomic-length-51"),
		passed(rdmap.OpAtomicResponse).named("Atomic Response that was not asked for passed over", "X03",
			"rdmap/responder-atomic-response-unasked"),
		passed(rdmap.OpImmediateData).named("length of Immediate Data unchecked", "X03",
			"rdmap/responder-immediate-length-7"),
		passed(rdmap.OpImmediateDataSE).named("length of Immediate Data with SE unchecked", "X03",
			"rdmap/initiator-immediate-se-length-9").of(anInitiator),
		passed(rdmap.OpImmediateData).named("MSN of Immediate Data unchecked", "X03", "rdmap/responder-immediate-msn"),
	}
}

// wholeResponse makes a whole Read Response of the first half of one.
func wholeResponse(_ uint64, data, ulpdu []byte) []byte {
	seg, op := parsed(ulpdu)
	switch {
	case op != rdmap.OpReadResponse || len(seg.Payload) != 16:
		return data
	case seg.Last:
		return nil
	}
	seg.Last = true
	return framed(seg.Header, []byte(pingText))
}

// terminateVariants break what RFC 5040 asks of Terminates.
func terminateVariants() []variant {
	terminate := func(change func(seg *ddp.Segment)) variant { return fromEndpoint(on(rdmap.OpTerminate, change)) }
	isError := func(seg *ddp.Segment, op rdmap.Opcode) bool { return op == rdmap.OpWrite && len(seg.Payload) > 0 }
	answered := toEndpoint(on(rdmap.OpTerminate, func(seg *ddp.Segment) { seg.QN = 7 }))
	return []variant{
		answered.named("Terminate answered by a Terminate", "P36", "terminate/responder-rdmap-operation"),
		answered.named("Initiator answers a Terminate", "P39", "terminate/initiator-llp").of(anInitiator),
		toEndpoint(drop(a(rdmap.OpTerminate))).named("goes on after a Terminate", "P39",
			"terminate/responder-then-read"),
		terminate(func(seg *ddp.Segment) { seg.Payload[0] = seg.Payload[0]<<4 | seg.Payload[0]>>4; seg.Payload[2] >>= 5 }).
			named("Terminate with Layer and EType swapped", "P13", "terminate/responder-for-opcode"),
		terminate(func(seg *ddp.Segment) { seg.Payload[3] = 1 }).named("reserved bits in a Terminate", "P13",
			"terminate/responder-for-tagged"),
		terminate(func(seg *ddp.Segment) { seg.Payload[2] &^= 0x40 }).named("HdrCt without D", "P15",
			"terminate/responder-for-tagged"),
		terminate(func(seg *ddp.Segment) { seg.Payload[2] |= 0x20 }).named("HdrCt with R and no Read Request", "P15",
			"terminate/initiator-for-crc").of(anInitiator),
		terminate(func(seg *ddp.Segment) { seg.Payload[5] -= 14 }).named(
			"length of the payload for that of the segment", "P53", "terminate/responder-for-tagged"),
		terminate(func(seg *ddp.Segment) { seg.Payload, seg.Payload[2] = seg.Payload[:4], 0 }).
			named("Terminate without the DDP header", "P53", "terminate/initiator-for-untagged").of(anInitiator),
		terminate(func(seg *ddp.Segment) { seg.Payload[2] &^= 0x20 }).named("Terminate without the Read Request", "P54",
			"terminate/responder-for-read"),
		terminate(func(seg *ddp.Segment) { seg.MSN = 2 }).named("Terminate with MSN 2", "P36",
			"terminate/responder-for-tagged"),
		fromEndpoint(twice).named("two Terminates", "P39", "terminate/responder-first-error"),
		toEndpoint(drop(isError)).named("second error told of", "P55",
			"terminate/initiator-first-error").of(anInitiator),
		toEndpoint(drop(isError)).named("goes on after an error", "D42", "terminate/responder-then-silence"),
		variant{fromPeer: frame(nil, undying)}.named("connection left open after an error", "P48",
			"terminate/responder-answered"),
		variant{fromPeer: frame(nil, undying)}.named("connection left open after a Terminate", "D07",
			"terminate/responder-rdmap-protection"),
	}
}

// twice sends a Terminate twice.
func twice(_ uint64, data, ulpdu []byte) []byte {
	if _, op := parsed(ulpdu); op == rdmap.OpTerminate {
		return append(data, data...)
	}
	return data
}
