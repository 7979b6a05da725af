package pcapfile_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/internal/pcapfile"
)

// block is one of pcapng of n bytes.
func block(n int) []byte {
	b := make([]byte, n)
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	return b
}

// TestLimit has a file with whole blocks up to the limit, and nothing after the first that does not fit.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		limit      int64
		size, left int64
	}{
		{0, 240, 0}, {1000, 240, 0}, {240, 240, 0},
		{239, 200, 40},  // the last does not fit
		{150, 100, 140}, // and the next would
		{1, 40, 200},    // the head is there whatever the limit
	} {
		name := filepath.Join(t.TempDir(), "x.pcapng")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		f := pcapfile.On(file, tt.limit)
		for _, blocks := range [][]byte{block(40), append(block(60), block(100)...), block(40)} {
			if n, err := f.Write(blocks); n != len(blocks) || err != nil {
				t.Error(n, err)
			}
		}
		size, left := f.Bytes()
		if size != tt.size || left != tt.left {
			t.Errorf("limit %d: %d bytes, %d left out", tt.limit, size, left)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(name); err != nil || info.Size() != size {
			t.Error(info.Size(), err)
		}
		if _, err := f.Write(block(40)); err == nil {
			t.Error("a Write after Close succeeds")
		}
	}
}
