package mpa

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/layout"
)

// zeros is what PAD, and the CRC field when CRC is off, is taken from. [F03] [F05]
const zeros = "\x00\x00\x00\x00"

// Writer frames one direction of a connection: it makes FPDUs of ULPDUs. It
// writes to slices only, does not allocate, and is not safe for concurrent use.
//
// A ULPDU is framed by one Append, or by one Begin, any number of Payload and one End. Like all
// codecs it writes more than is legal: any ULPDU whose length fits into ULPDU_Length. A sender
// keeps to layout.MULPDU. A Writer panics where a caller breaks these rules, as going on would
// put a stream on the wire that no receiver can follow.
//
// A Writer is a value: to give up an FPDU between Begin and End, assign a copy that was
// made before Begin, and drop what was appended since.
type Writer struct {
	markers bool
	crc     bool

	offset uint64 // bytes of Full Operation written

	// between Begin and End
	header uint64 // where ULPDU_Length is in the stream
	size   int    // ULPDU_Length announced
	left   int    // bytes of it still to come
	open   bool
	sum    uint32 // of the FPDU, less
	fresh  int    // the last bytes appended, which are not summed yet
}

// NewWriter returns a Writer at the beginning of Full Operation. Markers are
// inserted if the peer declared M=1, and CRCs generated if either side
// declared C=1.
func NewWriter(markers, crc bool) Writer { return Writer{markers: markers, crc: crc} }

// Offset returns the bytes of Full Operation written so far, markers included.
func (w *Writer) Offset() uint64 { return w.offset }

// Append appends one whole FPDU around the ULPDU that the pieces make up, and
// returns the extended slice. The pieces are copied, and markers inserted where
// they fall. RFC 5044, section 3: an FPDU carries exactly one ULPDU.
func (w *Writer) Append(dst []byte, ulpdu ...[]byte) []byte {
	n := 0
	for _, p := range ulpdu {
		n += len(p)
	}
	dst = w.Begin(dst, n)
	for _, p := range ulpdu {
		dst = w.Payload(dst, p)
	}
	return w.End(dst)
}

// Frame is Append for a ULPDU of a header and its payload.
func (w *Writer) Frame(dst, header, payload []byte) []byte {
	n := len(header) + len(payload)
	if w.markers || w.open || n > layout.MaxULPDULength || len(payload) < sumAtOnce || len(header) != leadShort &&
		len(header) != leadLong {
		return w.Append(dst, header, payload)
	}
	at, size := len(dst), layout.ContentLen(n)
	dst = slices.Grow(dst, size)[:at+size]
	f := dst[at:]
	from := writeHeader(f, n, header)
	to := from + len(payload)
	sum := uint32(0) // what the CRC field has when CRC is off [F05]
	if w.crc {
		sum = crc32c.Copy(f[from:], payload, crc32c.Update(0, f[:from]))
	} else {
		copy(f[from:], payload)
	}
	if pad := layout.PadLen(n); pad > 0 {
		copy(f[to:], zeros[:pad])
		if w.crc {
			sum = crc32c.Update(sum, f[to:to+pad])
		}
	}
	binary.LittleEndian.PutUint32(f[size-layout.CRCLen:], sum)
	w.offset += uint64(size)
	return dst
}

// Lengths of the headers that lead takes: those of DDP.
const (
	leadShort = 14
	leadLong  = 18
)

// writeHeader writes ULPDU_Length and a header to f, and returns how many bytes. It writes the words that are summed
// then: a processor that loads at once what it has just stored in other pieces waits for all its stores.
func writeHeader(f []byte, n int, header []byte) int {
	if len(header) == leadShort {
		f, h := (*[layout.LengthLen + leadShort]byte)(f), (*[leadShort]byte)(header)
		word := binary.BigEndian.Uint64(h[:])
		rest := uint64(binary.BigEndian.Uint32(h[8:]))<<16 | uint64(binary.BigEndian.Uint16(h[12:]))
		binary.BigEndian.PutUint64(f[:], uint64(n)<<48|word>>16)
		binary.BigEndian.PutUint64(f[8:], word<<48|rest)
		return len(f)
	}
	g, h := (*[layout.LengthLen + leadLong]byte)(f), (*[leadLong]byte)(header)
	word, next := binary.BigEndian.Uint64(h[:]), binary.BigEndian.Uint64(h[8:])
	binary.BigEndian.PutUint64(g[:], uint64(n)<<48|word>>16)
	binary.BigEndian.PutUint64(g[8:], word<<48|next>>16)
	binary.BigEndian.PutUint32(g[16:], uint32(next)<<16|uint32(binary.BigEndian.Uint16(h[16:])))
	return len(g)
}

// Begin begins an FPDU around a ULPDU of n bytes: it appends ULPDU_Length, and the
// marker in front of it if one falls there, and returns the extended slice.
func (w *Writer) Begin(dst []byte, n int) []byte {
	switch {
	case w.open:
		panic("mpa: Writer used between Begin and End")
	case n > layout.MaxULPDULength:
		panic(fmt.Sprintf("mpa: ULPDU of %d bytes does not fit ULPDU_Length", n))
	}
	w.sum, w.fresh = 0, 0
	// A marker between two FPDUs is 0: the second one's ULPDU_Length follows it. [F09]
	w.header = w.offset
	dst = w.marker(dst)
	w.header = w.offset
	w.size, w.left, w.open = n, n, true
	w.took(layout.LengthLen)
	return binary.BigEndian.AppendUint16(dst, uint16(n))
}

// sumAtOnce is the length in bytes from which a payload is summed while it is copied.
// Shorter ones are summed together with what is around them.
const sumAtOnce = 1024

// Payload appends the next bytes of the ULPDU to what Begin or the last Payload has
// returned, with the markers that fall between them, and returns the extended slice. Each
// byte of p is read once: the CRC is that of what was appended, whatever becomes of p.
func (w *Writer) Payload(dst, p []byte) []byte {
	if len(p) > w.left {
		panic(fmt.Sprintf("mpa: Writer.Payload: %d bytes more than the ULPDU_Length of %d", len(p)-w.left, w.size))
	}
	w.left -= len(p)
	switch {
	case w.markers && w.crc && len(p) >= weaveAtOnce:
		return w.insertMarkersSumming(dst, p)
	case w.markers:
		return w.insertMarkers(dst, p)
	case w.crc && len(p) >= sumAtOnce:
		return w.copySumming(dst, p)
	}
	w.took(len(p))
	return append(dst, p...)
}

// End ends the FPDU: it appends PAD and CRC, with the marker in front of either that may
// fall there, to what the last Payload has returned, and returns the extended slice. The
// CRC field is zero when CRC is off.
func (w *Writer) End(dst []byte) []byte {
	if !w.open || w.left > 0 {
		panic(fmt.Sprintf("mpa: Writer.End: %d bytes of the ULPDU are missing", w.left))
	}
	w.open = false
	// RFC 5044, section 4.1: "The pad data MUST be set to zero by the sender". [F03]
	pad := zeros[:layout.PadLen(w.size)]
	if w.markers {
		dst = w.insertMarkers(dst, []byte(pad))
		dst = w.marker(dst)
	} else {
		dst = append(dst, pad...)
		w.took(len(pad))
	}
	// Section 4.4: the CRC is calculated from the first octet of the FPDU, a marker in
	// front included, "to the last octet of the PAD (if present), inclusive. If there is a
	// Marker immediately following the PAD, the Marker is included". [F04]
	if w.crc {
		w.catchUp(dst)
		dst = layout.AppendCRC(dst, w.sum)
	} else {
		dst = append(dst, zeros[:layout.CRCLen]...) // [F05]
	}
	w.offset += layout.CRCLen
	return dst
}

// copySumming appends p, and sums it with all before it.
func (w *Writer) copySumming(dst, p []byte) []byte {
	w.catchUp(dst)
	at := len(dst)
	dst = slices.Grow(dst, len(p))[:at+len(p)]
	w.sum = crc32c.Copy(dst[at:], p, w.sum)
	w.offset += uint64(len(p))
	return dst
}

// took takes note of n bytes that are appended and to be summed.
func (w *Writer) took(n int) {
	w.offset += uint64(n)
	w.fresh += n
}

// catchUp sums what is not summed yet, the last bytes of dst.
func (w *Writer) catchUp(dst []byte) {
	if w.fresh > 0 {
		w.sum = crc32c.Update(w.sum, dst[len(dst)-w.fresh:])
		w.fresh = 0
	}
}

// insertMarkers appends content, with a marker wherever one falls in front of a byte.
func (w *Writer) insertMarkers(dst, p []byte) []byte {
	for len(p) > 0 {
		dst = w.marker(dst)
		run, _ := layout.ToMarker(w.offset)
		run = min(run, len(p))
		dst = append(dst, p[:run]...)
		w.took(run)
		p = p[run:]
	}
	return dst
}

// weaveAtOnce is the length in bytes from which a payload is summed while it is distributed between markers.
const weaveAtOnce = 4096

// insertMarkersSumming appends p, of which all that is between two markers is summed in passing. [F07] [F08]
func (w *Writer) insertMarkersSumming(dst, p []byte) []byte {
	lead := layout.NextMarker(w.offset)
	dst, p = w.insertMarkers(dst, p[:lead]), p[lead:]
	w.catchUp(dst)

	blocks := len(p) / crc32c.WeaveFrom
	at, from, to := len(dst), blocks*crc32c.WeaveFrom, blocks*crc32c.WeaveTo
	dst = slices.Grow(dst, to)[:at+to]
	w.sum = crc32c.Weave(dst[at:], p[:from], uint32(w.offset-w.header), w.sum)
	w.offset += uint64(to)
	return w.insertMarkers(dst, p[from:])
}

// marker appends a marker if one falls here, so that content may follow.
//
// RFC 5044, section 4.3: "If an FPDU is large enough to contain multiple Markers,
// they MUST all point to the same point in the TCP stream: the first octet of the
// ULPDU Length field for the FPDU." [F08]
func (w *Writer) marker(dst []byte) []byte {
	if !w.markers || w.offset%layout.MarkerInterval != 0 {
		return dst
	}
	dst = layout.AppendMarker(dst, w.offset-w.header)
	w.took(layout.MarkerLen)
	return dst
}
