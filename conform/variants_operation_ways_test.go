package conform_test

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// toEndpoint and fromEndpoint edit the FPDUs of one direction, after the startup.
func toEndpoint(e edit) variant   { return variant{toPeer: frame(nil, fpdus(e)), fromPeer: frame(nil)} }
func fromEndpoint(e edit) variant { return variant{toPeer: frame(nil), fromPeer: frame(nil, fpdus(e))} }

// named gives a variant its name, its rule and its case.
func (v variant) named(name, rule, caughtBy string) variant {
	v.name, v.rule, v.caughtBy = name, rule, caughtBy
	return v
}

// of gives a variant a setup.
func (v variant) of(s setup) variant {
	v.setup = s
	return v
}

// parsed returns the segment of an FPDU of either direction.
func parsed(ulpdu []byte) (ddp.Segment, rdmap.Opcode) {
	seg, err := ddp.Parse(ulpdu)
	if err != nil {
		return ddp.Segment{}, 0xff
	}
	return seg, rdmap.OpcodeOf(&seg.Header)
}

// framed returns an FPDU without markers.
func framed(h ddp.Header, payload []byte) []byte {
	w := mpa.NewWriter(false, true)
	return w.Append(nil, h.Append(nil), payload)
}

// on edits the segments of one opcode, of streams without markers.
func on(op rdmap.Opcode, change func(seg *ddp.Segment)) edit {
	return when(func(_ *ddp.Segment, o rdmap.Opcode) bool { return o == op }, change)
}

// when edits the segments for which a condition holds.
func when(holds func(seg *ddp.Segment, op rdmap.Opcode) bool, change func(seg *ddp.Segment)) edit {
	return func(_ uint64, data, ulpdu []byte) []byte {
		seg, op := parsed(ulpdu)
		if !holds(&seg, op) {
			return data
		}
		seg.Payload = append([]byte(nil), seg.Payload...)
		change(&seg)
		return framed(seg.Header, seg.Payload)
	}
}

// drop drops the segments for which a condition holds.
func drop(holds func(seg *ddp.Segment, op rdmap.Opcode) bool) edit {
	return func(_ uint64, data, ulpdu []byte) []byte {
		if seg, op := parsed(ulpdu); holds(&seg, op) {
			return nil
		}
		return data
	}
}

// dislike damages the segments for which a condition holds, so that the endpoint
// refuses them.
func dislike(holds func(seg *ddp.Segment, op rdmap.Opcode) bool) edit {
	return func(_ uint64, data, ulpdu []byte) []byte {
		if seg, op := parsed(ulpdu); holds(&seg, op) {
			script.SpoilCRC(data)
		}
		return data
	}
}

// dislikeFPDU damages FPDUs by their bytes.
func dislikeFPDU(holds func(offset uint64, data, ulpdu []byte) bool) edit {
	return func(offset uint64, data, ulpdu []byte) []byte {
		if holds(offset, data, ulpdu) {
			script.SpoilCRC(data)
		}
		return data
	}
}

// a returns a condition of opcode alone.
func a(op rdmap.Opcode) func(*ddp.Segment, rdmap.Opcode) bool {
	return func(_ *ddp.Segment, o rdmap.Opcode) bool { return o == op }
}

// code replaces the code of the Terminates that are sent, and keeps what follows it.
func code(c rdmap.Code) edit {
	return on(rdmap.OpTerminate, func(seg *ddp.Segment) { seg.Payload[0], seg.Payload[1] = byte(c>>8), byte(c) })
}

// swapped swaps the first segment for which a condition holds with the one after it.
func swapped(holds func(seg *ddp.Segment, op rdmap.Opcode) bool) edit {
	var held []byte
	done := false
	return func(_ uint64, data, ulpdu []byte) []byte {
		if seg, op := parsed(ulpdu); held == nil && !done && holds(&seg, op) {
			held = data
			return nil
		}
		if held != nil {
			data = append(data, held...)
			held, done = nil, true
		}
		return data
	}
}

// repairCRC makes every CRC right on the way to the endpoint: to the suite it is an
// endpoint that checks none.
func repairCRC(w *wire, src *script.Link, dst *testrig.Conn) {
	unchecked := func(w *wire, _ *script.Link) script.Terms { return script.Terms{MarkersReceive: w.wantsMarkers()} }
	fpdusIn(unchecked, func(_ uint64, data, _ []byte) []byte { return script.Seal(data) })(w, src, dst)
}

// wantsMarkers reports the endpoint's M.
func (w *wire) wantsMarkers() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.m
}

// bySegment hands what arrives in one go to judge, which returns what of it to carry;
// nil closes the connection.
func bySegment(judge func(b []byte) []byte) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		for src.Need(1, forever) == nil {
			b := judge(src.Take(len(src.Received())))
			if b == nil {
				shut(w, src, dst)
				return
			}
			_, _ = dst.Write(b)
		}
		pass(w, src, dst)
	}
}

// wholeReads closes the connection unless what arrives in one go are whole FPDUs.
func wholeReads(w *wire, src *script.Link, dst *testrig.Conn) {
	bySegment(func(b []byte) []byte {
		if wholeFPDUs(b) < len(b) {
			return nil
		}
		return b
	})(w, src, dst)
}

// firstOfEach carries only the first FPDU of what arrives in one go.
func firstOfEach(w *wire, src *script.Link, dst *testrig.Conn) {
	bySegment(func(b []byte) []byte {
		r := mpa.NewReader(false, true)
		_, n, _ := r.Next(b)
		return b[:n]
	})(w, src, dst)
}

// wholeFPDUs returns how many bytes of b are FPDUs.
func wholeFPDUs(b []byte) (n int) {
	r := mpa.NewReader(false, true)
	for {
		_, k, err := r.Next(b[n:])
		if k == 0 || err != nil {
			return n
		}
		n += k
	}
}

// completeCRC puts the right CRC after an FPDU that ends without one.
func completeCRC(w *wire, src *script.Link, dst *testrig.Conn) {
	var all []byte
	for src.Need(1, forever) == nil {
		b := src.Take(len(src.Received()))
		_, _ = dst.Write(b)
		all = append(all, b...)
	}
	last := append(all[wholeFPDUs(all):], 0, 0, 0, 0)
	_, _ = dst.Write(script.Seal(last)[len(last)-4:])
	pass(w, src, dst)
}

// resetAtEnd carries bytes, and resets the connection where it would be closed.
func resetAtEnd(w *wire, src *script.Link, dst *testrig.Conn) {
	carry(src, dst)
	_ = script.NewLink(dst).Reset()
	w.hangUp()
}
