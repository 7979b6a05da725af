package target

import (
	"fmt"
	"io"
	"sync"

	"github.com/goiwarp/iwarp"
)

// Memory is a Backend in memory, which is lost with the program. What was never written, or was discarded, takes no
// memory, as far as it is whole chunks of 1 MiB.
type Memory struct {
	size  int64
	block int

	chunks []chunk
}

// A chunk is a part of the memory, with a lock of its own.
type chunk struct {
	mu    sync.RWMutex
	bytes []byte // nil: all zero
}

const chunkLen = 1 << 20

// MaxMemory is how many bytes a Memory may have: 1 TiB, of which the table of chunks takes 48 MiB.
const MaxMemory = 1 << 40

// NewMemory returns a Memory of size bytes, up to MaxMemory, all zero. The error wraps iwarp.ErrInvalid.
func NewMemory(size int64, blockSize int) (*Memory, error) {
	if err := checkSize(size, blockSize); err != nil {
		return nil, err
	}
	if size > MaxMemory {
		return nil, fmt.Errorf("%w: a disk of %d bytes in memory: it has up to %d",
			iwarp.ErrInvalid, size, int64(MaxMemory))
	}
	return &Memory{size: size, block: blockSize, chunks: make([]chunk, (size+chunkLen-1)/chunkLen)}, nil
}

// checkSize refuses what no disk has.
func checkSize(size int64, block int) error {
	switch {
	case block != 512 && block != 4096:
		return fmt.Errorf("%w: blocks of %d bytes: they have 512 or 4096", iwarp.ErrInvalid, block)
	case size < int64(block) || size%int64(block) != 0:
		return fmt.Errorf("%w: a disk of %d bytes: the size must be a multiple of %d, and not 0",
			iwarp.ErrInvalid, size, block)
	}
	return nil
}

// Size is the length in bytes.
func (m *Memory) Size() int64 { return m.size }

// BlockSize is the length of a block in bytes.
func (m *Memory) BlockSize() int { return m.block }

// DiscardsToZero is true.
func (m *Memory) DiscardsToZero() bool { return true }

// Flush does nothing: a Memory never outlives the program.
func (m *Memory) Flush() error { return nil }

// ReadAt copies what is there. The error is io.EOF beyond the end.
func (m *Memory) ReadAt(p []byte, off int64) (n int, err error) {
	return m.each(int64(len(p)), off, func(c *chunk, at, from, length int64) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		if c.bytes == nil {
			clear(p[from : from+length])
			return
		}
		copy(p[from:from+length], c.bytes[at:])
	})
}

// WriteAt copies p. The error is io.EOF beyond the end.
func (m *Memory) WriteAt(p []byte, off int64) (n int, err error) {
	return m.each(int64(len(p)), off, func(c *chunk, at, from, length int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.bytes == nil {
			c.bytes = make([]byte, chunkLen)
		}
		copy(c.bytes[at:], p[from:from+length])
	})
}

// WriteZeroes lets go of whole chunks, and clears the others. The error is io.EOF beyond the end.
func (m *Memory) WriteZeroes(off, n int64, _ bool) error {
	_, err := m.each(n, off, func(c *chunk, at, _, length int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.bytes == nil:
		case length == chunkLen:
			c.bytes = nil
		default:
			clear(c.bytes[at : at+length])
		}
	})
	return err
}

// Discard is WriteZeroes.
func (m *Memory) Discard(off, n int64) error { return m.WriteZeroes(off, n, true) }

// each calls f for each chunk that n bytes from off on touch: at is where in the chunk, and from where among the n
// bytes.
func (m *Memory) each(n, off int64, f func(c *chunk, at, from, length int64)) (done int, err error) {
	if off < 0 || n < 0 || off > m.size || n > m.size-off {
		return 0, io.EOF
	}
	for from := int64(0); from < n; {
		at := (off + from) % chunkLen
		length := min(chunkLen-at, n-from)
		f(&m.chunks[(off+from)/chunkLen], at, from, length)
		from += length
	}
	return int(n), nil
}
