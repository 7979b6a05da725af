package capture

import (
	"errors"
	"io"
)

// windowSize is how many bytes are read at once, at most. More leaves the cache.
const windowSize = 256 << 10

// maxEmptyReads bounds reads that bring neither bytes nor an error.
const maxEmptyReads = 100

// A window is the part of a file that is in memory. It reads no more than it is
// asked for has to wait for: what a growing file has so far is seen at once.
type window struct {
	src    io.Reader
	buf    []byte // buf[r:w] is not consumed
	r, w   int
	offset int64 // of buf[r] in the file
	err    error // of src, once it had one
}

func newWindow(src io.Reader) window {
	return window{src: src, buf: make([]byte, windowSize)}
}

// peek returns the next n bytes without consuming them, and is the end of what it
// returned before. The error is io.EOF if there are none left, and
// io.ErrUnexpectedEOF if there are fewer.
func (w *window) peek(n int) ([]byte, error) {
	if w.w-w.r < n {
		if err := w.fill(n); err != nil {
			return nil, err
		}
	}
	return w.buf[w.r : w.r+n : w.r+n], nil
}

// buffered returns what is in memory of the next n bytes.
func (w *window) buffered(n int) []byte { return w.buf[w.r:min(w.w, w.r+n)] }

// consume drops n bytes that peek has returned; these stay as they are until the
// next peek.
func (w *window) consume(n int) {
	w.r += n
	w.offset += int64(n)
}

// fill reads until n bytes are there.
func (w *window) fill(n int) error {
	w.slide(n)
	for empty := 0; w.w < n; {
		if w.err != nil {
			return w.ended()
		}
		m, err := w.src.Read(w.buf[w.w:])
		w.w, w.err = w.w+m, err
		if m > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads && err == nil {
			w.err = io.ErrNoProgress
		}
	}
	return nil
}

// slide moves what is not consumed to the front of a buffer of n bytes at least.
func (w *window) slide(n int) {
	to := w.buf
	if n > len(to) {
		to = make([]byte, n)
	}
	w.w = copy(to, w.buf[w.r:w.w])
	w.buf, w.r = to, 0
}

// ended is the error of a peek that met the end of the file.
func (w *window) ended() error {
	if errors.Is(w.err, io.EOF) && w.w > w.r {
		return io.ErrUnexpectedEOF
	}
	return w.err
}

// skip consumes n bytes without looking at them.
func (w *window) skip(n int64) error {
	for n > 0 {
		step := int(min(n, windowSize))
		if _, err := w.peek(step); err != nil {
			return unexpected(err)
		}
		w.consume(step)
		n -= int64(step)
	}
	return nil
}

// unexpected makes an end of the file one that should not be there.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
