package rping

import (
	"bytes"
	"fmt"
)

// The letters of a text go from first to last and begin again.
const first, last = 'A', 'z'

// fill writes the text of a ping: its name, letters that begin one further on
// with every ping, and a byte of zero at the end, which it gives first place
// to when the buffer is short.
func fill(buf []byte, ping int) {
	n := copy(buf, fmt.Sprintf("rdma-ping-%d: ", ping))
	letter := first + byte(ping%(last-first+1))
	for i := n; i < len(buf); i++ {
		buf[i] = letter
		if letter++; letter > last {
			letter = first
		}
	}
	buf[len(buf)-1] = 0
}

// text returns what comes before the first byte of zero.
func text(buf []byte) []byte {
	if end := bytes.IndexByte(buf, 0); end >= 0 {
		return buf[:end]
	}
	return buf
}

// A MismatchError says that what came is not what was sent.
type MismatchError struct {
	Ping      int
	Offset    int // of the first byte that is wrong
	Got, Want byte
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("data mismatch! ping %d, offset %d: got 0x%02x, want 0x%02x", e.Ping, e.Offset, e.Got, e.Want)
}

// compare returns a MismatchError for the first byte in which two buffers of
// the same length differ.
func compare(ping int, got, want []byte) error {
	for i := range want {
		if got[i] != want[i] {
			return &MismatchError{ping, i, got[i], want[i]}
		}
	}
	return nil
}
