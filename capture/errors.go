package capture

import (
	"fmt"
	"io"
)

// A FormatError is a file that is not a capture.
type FormatError struct {
	Found string // what it is instead
}

func (e *FormatError) Error() string {
	return "capture: neither pcap nor pcapng: " + e.Found
}

// A CutOffError is a capture that ends within a packet, as it does if the program that wrote it
// was killed, or has not finished. It is an io.ErrUnexpectedEOF. What comes before that packet
// has been read and is good.
type CutOffError struct {
	Packet uint64 // number of the packet that is not whole; 1 if not even the file's header is
}

func (e *CutOffError) Error() string {
	return fmt.Sprintf("capture: cut off in packet %d", e.Packet)
}

// Unwrap returns io.ErrUnexpectedEOF.
func (e *CutOffError) Unwrap() error { return io.ErrUnexpectedEOF }

// A DamageError is a capture in which the next packet cannot be found.
type DamageError struct {
	Packet uint64 // number of the packet that would have been next
	Offset int64  // of the damaged record or block in the file, in bytes
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("capture: damaged at packet %d, file offset %d: %s", e.Packet, e.Offset, e.Reason)
}

// damage is the reason for a DamageError; the Reader knows the place.
type damage string

func (d damage) Error() string { return string(d) }

func damagef(format string, args ...any) error { return damage(fmt.Sprintf(format, args...)) }
