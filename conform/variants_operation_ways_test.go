package conform_test

import (
	"io"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// toEndpoint and fromEndpoint edit the FPDUs of one direction, behind the startup.
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
	return func(_ uint64, octets, ulpdu []byte) []byte {
		seg, op := parsed(ulpdu)
		if !holds(&seg, op) {
			return octets
		}
		seg.Payload = append([]byte(nil), seg.Payload...)
		change(&seg)
		return framed(seg.Header, seg.Payload)
	}
}

// drop drops the segments for which a condition holds.
func drop(holds func(seg *ddp.Segment, op rdmap.Opcode) bool) edit {
	return func(_ uint64, octets, ulpdu []byte) []byte {
		if seg, op := parsed(ulpdu); holds(&seg, op) {
			return nil
		}
		return octets
	}
}

// dislike damages the segments for which a condition holds, so that the endpoint
// refuses them.
func dislike(holds func(seg *ddp.Segment, op rdmap.Opcode) bool) edit {
	return func(_ uint64, octets, ulpdu []byte) []byte {
		if seg, op := parsed(ulpdu); holds(&seg, op) {
			octets[len(octets)-1] ^= 1
		}
		return octets
	}
}

// dislikeFPDU damages FPDUs by their octets.
func dislikeFPDU(holds func(offset uint64, octets, ulpdu []byte) bool) edit {
	return func(offset uint64, octets, ulpdu []byte) []byte {
		if holds(offset, octets, ulpdu) {
			octets[len(octets)-1] ^= 1
		}
		return octets
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

// behind swaps the first segment for which a condition holds with the one behind it.
func behind(holds func(seg *ddp.Segment, op rdmap.Opcode) bool) edit {
	var held []byte
	done := false
	return func(_ uint64, octets, ulpdu []byte) []byte {
		if seg, op := parsed(ulpdu); held == nil && !done && holds(&seg, op) {
			held = octets
			return nil
		}
		if held != nil {
			octets = append(octets, held...)
			held, done = nil, true
		}
		return octets
	}
}

// repairCRC makes every CRC right on the way to the endpoint: to the suite it is an
// endpoint that checks none.
func repairCRC(w *wire, src, dst *memConn) {
	var r *mpa.Reader
	var in []byte
	for {
		var buf [4096]byte
		n, err := src.Read(buf[:])
		if err != nil {
			pass(w, src, dst)
			return
		}
		if r == nil {
			markers := mpa.NewReader(w.wantsMarkers(), false)
			r = &markers
		}
		in = append(in, buf[:n]...)
		mend := func(_ uint64, octets, _ []byte) []byte { return seal(octets) }
		for k, ok := next(r, in, mend, dst); ok; k, ok = next(r, in, mend, dst) {
			in = in[k:]
		}
	}
}

// wantsMarkers reports the endpoint's M.
func (w *wire) wantsMarkers() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.m
}

// wholeReads closes the connection unless what arrives in one go are whole FPDUs.
func wholeReads(w *wire, src, dst *memConn) {
	for {
		var buf [4096]byte
		n, err := src.Read(buf[:])
		if err != nil {
			pass(w, src, dst)
			return
		}
		r := mpa.NewReader(false, true)
		for at := 0; at < n; {
			_, k, err := r.Next(append([]byte(nil), buf[at:n]...))
			if k == 0 || err != nil {
				shut(w, src, dst)
				return
			}
			at += k
		}
		_, _ = dst.Write(buf[:n])
	}
}

// firstOfEach carries only the first FPDU of what arrives in one go.
func firstOfEach(w *wire, src, dst *memConn) {
	for {
		var buf [4096]byte
		n, err := src.Read(buf[:])
		if err != nil {
			pass(w, src, dst)
			return
		}
		r := mpa.NewReader(false, true)
		_, k, _ := r.Next(append([]byte(nil), buf[:n]...))
		_, _ = dst.Write(buf[:k])
	}
}

// completeCRC puts the right CRC behind an FPDU that ends without.
func completeCRC(w *wire, src, dst *memConn) {
	r := mpa.NewReader(false, true)
	var last []byte // FPDU that is not whole
	var buf [4096]byte
	for {
		n, err := src.Read(buf[:])
		if err != nil {
			break
		}
		_, _ = dst.Write(buf[:n])
		last = append(last, buf[:n]...)
		for k := 1; k > 0; last = last[k:] {
			_, k, _ = r.Next(append([]byte(nil), last...))
		}
	}
	_, _ = dst.Write(mpa.AppendCRC(nil, mpa.CRC32C(0, last)))
	pass(w, src, dst)
}

// resetAtEnd carries octets, and resets the connection where it would be closed.
func resetAtEnd(w *wire, src, dst *memConn) {
	_, _ = io.Copy(plainWriter{dst}, plainReader{src})
	_ = dst.SetLinger(0)
	dst.Close()
	w.hangUp()
}
