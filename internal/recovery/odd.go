package recovery

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Doubtful is an FPDU in order about which [Config.End] is asked: its CRC is wrong, its stream
// has no CRCs, or its last bytes are not there.
type Doubtful struct {
	// Offset is where it begins on the stream, Length its ULPDU_Length, and Size how many bytes
	// it takes by that.
	Offset       uint64
	Length, Size int
	// ULPDU is what goes to DDP, as far as it is there.
	ULPDU []byte
	// Head is its bytes, as far as they are there: all but the last three at least. Rest is
	// those after them that are there. No slice must be kept.
	Head, Rest []byte
	// Final tells that what is not there will not come.
	Final bool

	place   uint64
	markers bool
}

// Padded returns how many bytes it takes with another pad than it must have, of n bytes.
func (d *Doubtful) Padded(n int) int {
	content := layout.LengthLen + d.Length + n + layout.CRCLen
	if !d.markers {
		return content
	}
	return content + layout.MarkerLen*layout.MarkersIn(d.place, content)
}

// Lead returns how many bytes of a marker are in front of an FPDU that begins right after n bytes
// of this one.
func (d *Doubtful) Lead(n int) int { return layout.LeadLen(d.place+uint64(n), d.markers) }

// maxPad is how many bytes a pad has at most.
const maxPad = 3

// endsOddly asks about an FPDU of some size by its ULPDU_Length, at the start of b. If it ends
// elsewhere, or where it must though its CRC is wrong, it is reported so. If that is not known
// yet, it is kept until more has come.
func (r *Receiver) endsOddly(b []byte, length, size int) (done bool) {
	if r.cfg.End == nil || !r.cfg.Resync || r.doubt || len(b)+maxPad+layout.MarkerLen < size {
		return false
	}
	d := Doubtful{
		Offset: r.next, Length: length, Size: size, Final: r.final,
		ULPDU: r.ulpdu(r.next, b, length), Head: b[:min(len(b), size)],
		place: r.place(r.next), markers: r.cfg.Markers,
	}
	if d.Rest = b[len(d.Head):]; len(d.Rest) == 0 && r.run.len() > 0 {
		d.Rest = r.in // those of it that the FPDU needs were moved to run
	}
	end, ok := r.cfg.End(d)
	there := len(d.Head) + len(d.Rest)
	switch {
	case ok && end >= d.Padded(0) && end <= there && (end != size || r.cfg.CRC):
		r.odd(b, length, size, end)
		return true
	case !ok && end > there && len(b) >= size && !r.final:
		r.waits = true
		r.partial(size)
		return true
	}
	return false
}

// odd reports an FPDU at the start of b that ends elsewhere than by its length, or has a wrong
// CRC.
func (r *Receiver) odd(b []byte, length, size, end int) {
	if r.run.len() > 0 {
		r.fill(end)
		b = r.run.bytes()
	}
	ev := Event{
		Kind: Placed, Offset: r.next, End: r.next + uint64(end), Length: length, Located: r.how, Bytes: b[:end:end],
	}
	r.readMarkers(r.next, b[:end], end)
	ev.Markers, ev.ULPDU = r.marks, r.ulpdu(r.next, b, length)
	switch {
	case !r.cfg.CRC:
	case end == size:
		ev.Kind, ev.Err = Failed, r.verify(b, size)
	default:
		ev.Kind, ev.Err = Failed, r.padError(length, end)
	}
	r.final = false
	r.consume(end)
	r.emit(ev)
}

// padError is the error of an FPDU whose CRC is right with a pad of another size.
//
// RFC 5044, section 4.1: "The length of the pad is set so as to make the size of the FPDU an
// integral multiple of four." [F03]
func (r *Receiver) padError(length, end int) *mpa.Error {
	content := layout.LengthLen + length
	pad := end - content - layout.CRCLen - layout.MarkerLen*len(r.marks)
	return &mpa.Error{
		Code:   mpa.CodeCRC,
		Offset: r.next + uint64(content),
		Field:  "PAD",
		Reason: fmt.Sprintf("its CRC is right with a pad of %s, where %d must be",
			wording.Bytes(pad), layout.PadLen(length)),
		Hint: "the sender must pad the FPDU to a multiple of four bytes",
	}
}
