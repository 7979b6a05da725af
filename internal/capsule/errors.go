package capsule

import "fmt"

// An Error says that there are fewer bytes than a format has, or that they do not hold what the format says.
type Error struct {
	// Format is what was parsed, such as "command".
	Format string
	// Offset is where it went wrong.
	Offset int
	// Reason says why.
	Reason string
}

// Error names the format, the offset and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("nvme: %s: byte %d: %s", e.Format, e.Offset, e.Reason)
}

// needs is the error of fewer than want bytes.
func needs(format string, b []byte, want int) error {
	if len(b) >= want {
		return nil
	}
	return &Error{Format: format, Offset: len(b), Reason: fmt.Sprintf("the end, where there are to be %d bytes", want)}
}
