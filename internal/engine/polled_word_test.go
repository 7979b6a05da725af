package engine

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"
)

// TestPolledWord: a program waits for a Write by an atomic load of its last eight bytes (docs/memory.md), of which the
// last segment has four, or none. The race detector finds what is not stored as one word.
func TestPolledWord(t *testing.T) {
	for name, last := range map[string]int{"four": 4, "none": 0} {
		t.Run(name, func(t *testing.T) {
			const size = 2008
			n, buf, ones := initiator(t), make([]byte, size), bytes.Repeat([]byte{1}, size)
			r := n.region(buf, remoteAll)
			word := (*uint64)(unsafe.Pointer(&buf[size-8]))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for atomic.LoadUint64(word) == 0 {
					runtime.Gosched()
				}
			}()
			var b []byte
			cut := []int{4, 1004, size - last, size}
			for i := range 3 {
				s := write(r.STag(), uint64(cut[i]), ones[cut[i]:cut[i+1]])
				if i < 2 {
					s = s.more()
				}
				b = n.w.Append(b, s.ulpdu())
			}
			n.input(b)
			<-done
		})
	}
}
