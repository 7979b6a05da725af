package conform_test

import (
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/rdmap"
)

// What the cases ping with, as a peer gets it. (Were it taken from the package, the package would be compiled once more
// for its tests.)
const pingText = "rdma-ping-0: ABCDEFGHIJKLMNOPQR\x00"

var sourceAdvert = message.Advert{TO: 0x1000, STag: 0x00c0ff01, Length: uint32(len(pingText))}

// operationVariants break rules of Full Operation.
func operationVariants() []variant {
	return slices.Concat(fpduVariants(), markerVariants(), ddpVariants(), placementVariants(),
		rdmapVariants(), readVariants(), extensionVariants(), terminateVariants())
}

// ddpVariants break what RFC 5041 asks of headers.
func ddpVariants() []variant {
	send := func(change func(seg *ddp.Segment)) variant { return fromEndpoint(on(rdmap.OpSend, change)) }
	return []variant{
		toEndpoint(when(func(seg *ddp.Segment, _ rdmap.Opcode) bool { return seg.Version != 1 },
			func(seg *ddp.Segment) { seg.Version = 1 })).
			named("DDP version unchecked", "D13", "ddp/responder-version-plus-1-tagged"),
		fromEndpoint(code(rdmap.CodeDDPTaggedInvalidVersion)).
			named("code for the version of the other model", "D13", "ddp/responder-version-plus-2-untagged"),
		send(func(seg *ddp.Segment) { seg.Version = 0 }).named("version 0 where 1 was agreed", "D13",
			"rdmap/responder-sends"),
		toEndpoint(dislike(func(seg *ddp.Segment, _ rdmap.Opcode) bool { return seg.Rsvd != 0 })).
			named("reserved bits of DDP looked at", "D12", "ddp/responder-rsvd-tagged"),
		toEndpoint(dislike(func(seg *ddp.Segment, _ rdmap.Opcode) bool { return seg.Rsvd == 8 })).
			named("highest reserved bit of DDP looked at", "D12", "ddp/initiator-rsvd-untagged").of(anInitiator),
		send(func(seg *ddp.Segment) { seg.Rsvd = 2 }).named("reserved bits of DDP set", "D12", "rdmap/responder-sends"),
		send(func(seg *ddp.Segment) { seg.MSN-- }).named("MSN from 0", "D17", "rdmap/responder-sends"),
		send(func(seg *ddp.Segment) { seg.MSN = 1 }).named("MSN not advanced", "D17", "rdmap/responder-sends"),
		send(func(seg *ddp.Segment) { seg.MO = 4 }).named("MO that does not begin at 0", "D18",
			"rdmap/initiator-sends").of(anInitiator),
		send(func(seg *ddp.Segment) { seg.Last = false }).named("L missing", "D11",
			"rdmap/initiator-sends").of(anInitiator),
		fromEndpoint(on(rdmap.OpReadRequest, func(seg *ddp.Segment) { seg.QN = 0 })).
			named("Read Request on queue 0", "P01", "rdmap/responder-reads"),
		toEndpoint(when(a(rdmap.OpSend), func(seg *ddp.Segment) { seg.QN = 0 })).
			named("every queue taken for 0", "D36", "ddp/responder-qn-4"),
		toEndpoint(countedMSN()).named("MSN far ahead taken", "D37", "ddp/responder-msn-far"),
		toEndpoint(countedMSN()).named("message delivered twice", "D26", "ddp/initiator-msn-repeated").of(anInitiator),
		toEndpoint(countedMSN()).named("MSN of a Send unchecked", "D17", "ddp/responder-msn-send-0"),
	}
}

// countedMSN gives Read Requests and Sends the MSN that is due.
func countedMSN() edit {
	due := map[uint32]uint32{}
	return func(_ uint64, data, ulpdu []byte) []byte {
		seg, op := parsed(ulpdu)
		if op != rdmap.OpReadRequest && op != rdmap.OpSend {
			return data
		}
		due[seg.QN]++
		seg.MSN = due[seg.QN]
		return framed(seg.Header, seg.Payload)
	}
}

// placementVariants break what RFC 5041 asks of buffers.
func placementVariants() []variant {
	write := func(change func(seg *ddp.Segment)) edit {
		return when(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpWrite &&
				len(seg.Payload) > 0
		}, change)
	}
	next := uint64(0)
	return []variant{
		toEndpoint(when(a(rdmap.OpSend), func(seg *ddp.Segment) {
			seg.Payload = seg.Payload[:min(16,
				len(seg.Payload))]
		})).
			named("Send cut off at the end of the receive", "P30", "ddp/responder-too-long-17"),
		fromEndpoint(code(rdmap.CodeDDPInvalidMSNNoBuffer)).named("long Send called one without a buffer", "D38",
			"ddp/initiator-too-long-64").of(anInitiator),
		toEndpoint(when(a(rdmap.OpSend), func(seg *ddp.Segment) { seg.MO = 0 })).
			named("MO unchecked", "D38", "ddp/responder-mo-behind"),
		toEndpoint(wholeAtOnce).named("Send delivered without its end", "D27", "ddp/responder-incomplete"),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool { return op == rdmap.OpSend && !seg.Last })).
			named("Send of several segments refused", "D24", "ddp/initiator-segments-16").of(anInitiator),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool { return op == rdmap.OpSend && seg.MO == 6 })).
			named("overlapping Send refused", "D24", "ddp/initiator-mo-overlap").of(anInitiator),
		toEndpoint(drop(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpSend &&
				seg.MO == 8 && seg.Last
		})).
			named("bytes that come twice counted twice", "D24", "ddp/responder-mo-twice"),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpSend &&
				seg.MO == 6 && !seg.Last
		})).
			named("Send in another order refused", "D24", "ddp/responder-mo-any-order"),
		toEndpoint(drop(func(seg *ddp.Segment, op rdmap.Opcode) bool { return op == rdmap.OpSend && seg.MO == 16 })).
			named("empty end of a Send passed over", "D26", "ddp/responder-mo-empty-last"),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpReadResponse && len(seg.Payload) == 12
		})).
			named("Read Response in another order refused", "D24", "rdmap/responder-response-any-order"),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpReadResponse && len(seg.Payload) == 17
		})).
			named("overlapping Read Response refused", "D24", "rdmap/responder-response-overlap"),
		toEndpoint(drop(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpReadResponse && len(seg.Payload) == 0
		})).
			named("empty end of a Read Response passed over", "P28", "rdmap/responder-response-empty-last"),
		toEndpoint(drop(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpWrite &&
				len(seg.Payload) == 4
		})).
			named("Write to an unknown STag passed over", "D39", "ddp/responder-stag-unknown"),
		fromEndpoint(drop(a(rdmap.OpTerminate))).named("closed without a Terminate", "D39", "ddp/responder-stag-0"),
		toEndpoint(dislike(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpWrite &&
				seg.STag == 0xffffffff
		})).
			named("STag of an empty Write checked", "D23", "ddp/responder-empty-stag-all-ones"),
		toEndpoint(write(func(seg *ddp.Segment) { seg.TO-- })).named("bounds off by one at the end", "Z10",
			"ddp/initiator-end").of(anInitiator),
		toEndpoint(write(func(seg *ddp.Segment) { seg.TO++ })).named("bounds off by one at the base", "Z10",
			"ddp/initiator-base-minus-1").of(anInitiator),
		toEndpoint(write(func(seg *ddp.Segment) { seg.Payload = seg.Payload[:1] })).
			named("end of a Write unchecked", "D40", "ddp/initiator-end-across").of(anInitiator),
		toEndpoint(drop(func(seg *ddp.Segment, op rdmap.Opcode) bool {
			return op == rdmap.OpWrite &&
				len(seg.Payload) == 8
		})).
			named("Write that wraps passed over", "D40", "ddp/initiator-to-wrap").of(anInitiator),
		toEndpoint(write(func(seg *ddp.Segment) {
			if next == 0 {
				next = seg.TO
			}
			seg.TO, next = next, next+uint64(len(seg.Payload))
		})).named("segments of a Write placed one after the other", "D24",
			"ddp/initiator-write-reversed").of(anInitiator),
		toEndpoint(write(func(seg *ddp.Segment) { seg.Last, seg.Payload = true, seg.Payload[:len(seg.Payload)-1] })).
			named("last byte of every segment lost", "D24", "ddp/initiator-write-segments").of(anInitiator),
	}
}

// wholeAtOnce makes a whole advert of the first segment of one.
func wholeAtOnce(_ uint64, data, ulpdu []byte) []byte {
	seg, op := parsed(ulpdu)
	switch {
	case op != rdmap.OpSend || len(seg.Payload) != 8:
		return data
	case seg.Last:
		return nil
	}
	seg.Last = true
	return framed(seg.Header, sourceAdvert.Append(nil))
}
