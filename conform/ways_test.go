package conform_test

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// oneRead closes the connection unless the first read has all of the Request.
func oneRead(w *wire, src *script.Link, dst *testrig.Conn) {
	_ = src.Receive(forever)
	if _, short := mpa.ParseStartup(src.Received()); src.End() == script.Open && short != nil {
		shut(w, src, dst)
		return
	}
	pass(w, src, dst)
}

// cutPrivateData cuts Private Data down to 512 bytes.
func cutPrivateData(f *mpa.StartupFields) {
	f.PrivateData = f.PrivateData[:min(len(f.PrivateData), mpa.MaxPrivateData)]
}

// fillPrivateData gives enhanced data to a frame that has none.
func fillPrivateData(f *mpa.StartupFields) {
	for len(f.PrivateData) < mpa.EnhancedLen {
		f.PrivateData = append(f.PrivateData, 0)
	}
}

// deaf carries bytes and no FIN, up to the end of the connection.
func deaf(w *wire, src *script.Link, dst *testrig.Conn) {
	carry(src, dst)
	src.Conn().(*testrig.Conn).Gone()
	w.hangUp()
}

// undying carries bytes and not the end of the connection, until the suite gives up.
func undying(w *wire, src *script.Link, dst *testrig.Conn) {
	carry(src, dst)
	w.suite.Gone()
	w.hangUp()
}

// swapCRC turns the CRC field around.
func swapCRC(_ uint64, data, _ []byte) []byte {
	crc := data[len(data)-4:]
	binary.BigEndian.PutUint32(crc, binary.LittleEndian.Uint32(crc))
	return data
}

// dropCRC leaves zeros in the CRC field.
func dropCRC(_ uint64, data, _ []byte) []byte {
	clear(data[len(data)-4:])
	return data
}

// shiftMarkers has markers point four bytes beyond the FPDU's beginning.
func shiftMarkers(offset uint64, data, _ []byte) []byte {
	for at := range data[:len(data)-4] {
		if (offset+uint64(at))%512 == 0 {
			pointer := data[at+2:]
			binary.BigEndian.PutUint16(pointer, binary.BigEndian.Uint16(pointer)+4)
		}
	}
	return script.Seal(data)
}

// toSend makes a Send of an empty Write.
func toSend(_ uint64, data, ulpdu []byte) []byte {
	if len(ulpdu) != 14 {
		return data
	}
	h := rdmap.OpSend.Header(1)
	h.Last, h.MSN = true, 1
	w := mpa.NewWriter(false, true)
	return w.Append(nil, h.Append(nil))
}

// onlyFirst drops all FPDUs but the first, and allButFirst the first.
func onlyFirst(offset uint64, data, _ []byte) []byte {
	if offset > 0 {
		return nil
	}
	return data
}

func allButFirst(offset uint64, data, _ []byte) []byte {
	if offset == 0 {
		return nil
	}
	return data
}

// longer adds four bytes of payload to the first FPDU.
func longer(offset uint64, data, ulpdu []byte) []byte {
	if offset > 0 {
		return data
	}
	w := mpa.NewWriter(false, true)
	return w.Append(nil, ulpdu, make([]byte, 4))
}

// noMarkers takes the markers out.
func noMarkers(_ uint64, _, ulpdu []byte) []byte {
	w := mpa.NewWriter(false, true)
	return w.Append(nil, ulpdu)
}

// version1 turns DDP version 0 into 1.
func version1(offset uint64, data, _ []byte) []byte {
	at := 2
	if offset%512 == 0 {
		at += 4
	}
	data[at] |= 1
	return script.Seal(data)
}

// code5 turns the code of a Terminate of MPA's into 5.
func code5(_ uint64, data, ulpdu []byte) []byte {
	const code = 18 + 1 // after the DDP header, layer and error type
	if ulpdu[1]&0x0f != byte(rdmap.OpTerminate) {
		return data
	}
	ulpdu[code] = byte(mpa.CodeLocalCatastrophic)
	return noMarkers(0, nil, ulpdu)
}

// closeOnSTag0 closes the connection if the first FPDU's STag is 0.
func closeOnSTag0(w *wire, src *script.Link, dst *testrig.Conn) {
	if src.Need(2+14, forever) == nil && binary.BigEndian.Uint32(src.Received()[4:]) == 0 {
		shut(w, src, dst)
		return
	}
	pass(w, src, dst)
}

// impatient does not wait for Private Data.
func impatient(w *wire, src *script.Link, dst *testrig.Conn) {
	if b, err := src.Bytes(mpa.StartupHeaderLen, forever); err == nil {
		n := int(mpa.StartupFrame(b).PDLength())
		f := mpa.StartupFrame(b).Fields()
		f.PrivateData = make([]byte, n)
		copy(f.PrivateData, goodEnhanced[:])
		_, _ = dst.Write(mpa.AppendStartup(nil, &f))
		_, _ = src.Bytes(n, forever)
	}
	pass(w, src, dst)
}

// goodEnhanced is enhanced data of a Reply: A, IRD 1, C, ORD 1.
var goodEnhanced = [...]byte{0x80, 1, 0x80, 1}
