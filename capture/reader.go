package capture

import (
	"errors"
	"io"
)

// maxCaptured is the most bytes that one packet may have in a file: twice what
// the largest snap length of tcpdump, and Linux's largest segments, come to.
const maxCaptured = 1 << 20

// A Reader gives the packets of a capture in the order of the file. It is not safe
// for concurrent use.
type Reader struct {
	win    window
	format format
	packet Packet
	err    error // sticky
}

// A format is how a file holds packets.
type format interface {
	// next reads up to the end of the next packet into p, whose Number it raises by
	// one for this packet and for each record that Wireshark numbers like one.
	next(w *window, p *Packet) error
}

// Open reads the beginning of a capture, and finds out by that what it is. The
// error is a [*FormatError] if it is something else, a [*CutOffError] or a
// [*DamageError] if it is a capture without a whole or a sound header, and what r
// has returned otherwise.
func Open(r io.Reader) (*Reader, error) {
	opened := &Reader{win: newWindow(r)}
	var err error
	if opened.format, err = sniff(&opened.win); err != nil {
		return nil, opened.placed(err)
	}
	return opened, nil
}

// Next returns the next packet, which is valid until Next is called again. After
// the last one the error is io.EOF, or a [*CutOffError] if the file ends within a
// packet; a [*DamageError] if there is no telling where the next packet is; and
// what the underlying reader has returned otherwise.
func (r *Reader) Next() (*Packet, error) {
	if r.err != nil {
		return nil, r.err
	}
	if err := r.format.next(&r.win, &r.packet); err != nil {
		r.err = r.placed(err)
		return nil, r.err
	}
	return &r.packet, nil
}

// placed adds to an error where it was met.
func (r *Reader) placed(err error) error {
	var bad damage
	switch next := r.packet.Number + 1; {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &CutOffError{next}
	case errors.As(err, &bad):
		return &DamageError{next, r.win.offset, string(bad)}
	}
	return err
}
