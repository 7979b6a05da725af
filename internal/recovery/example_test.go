package recovery_test

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// Segments that come out of order: each ULPDU is placed as soon as it is whole, and
// delivered when all before it is there.
func ExampleReceiver() {
	w := mpa.NewWriter(true, true)
	var stream []byte
	for _, n := range []int{600, 700, 800} {
		stream = w.Append(stream, bytes.Repeat([]byte{'x'}, n))
	}
	r := recovery.New(recovery.Config{Markers: true, CRC: true})
	for _, segment := range [][2]int{{1000, len(stream)}, {0, 500}, {500, 1000}} {
		r.Segment(uint64(segment[0]), stream[segment[0]:segment[1]])
		fmt.Printf("segment %d to %d\n", segment[0], segment[1])
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			fmt.Printf("  %v %v: ULPDU of %d bytes at %d; delivered up to %d\n", ev.Kind, ev.Located, len(ev.ULPDU), ev.Offset, ev.Delivered)
		}
	}
	// Output:
	// segment 1000 to 2144
	//   placed by marker: ULPDU of 800 bytes at 1328; delivered up to 0
	// segment 0 to 500
	// segment 500 to 1000
	//   placed in order: ULPDU of 600 bytes at 0; delivered up to 616
	//   placed in order: ULPDU of 700 bytes at 616; delivered up to 2144
}
