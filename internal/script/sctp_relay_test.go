package script_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
)

// packet is one of SCTP with a chunk of a type.
func packet(number int, kind byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 10, 20), uint16(number))
	return append(b, kind, 3, 0, 5, 'x', 0, 0, 0)
}

// TestPermute: every packet arrives once, some after others, though not far; those without data stay where they are.
func TestPermute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pass := script.Permute(30, 1)
		var flow script.SCTPFlow
		var got []int
		for i := range 1000 {
			pass(&flow, true, packet(i, 0), func(b []byte) { got = append(got, int(binary.BigEndian.Uint16(b[10:]))) })
		}
		time.Sleep(time.Second) // for those that nothing follows
		late := 0
		for place, number := range got {
			if place > number {
				late++
			}
			if off := place - number; off > 50 || off < -50 {
				t.Errorf("packet %d came at place %d", number, place)
			}
		}
		if late < 200 || late > 400 {
			t.Errorf("%d of 1000 packets were late, of 30 %%", late)
		}
		slices.Sort(got)
		if len(got) != 1000 || len(slices.Compact(got)) != 1000 {
			t.Errorf("%d packets", len(got))
		}
		n := 0
		for i := range 100 {
			pass(&flow, false, packet(i, 3), func([]byte) { n++ })
		}
		if n != 100 {
			t.Errorf("%d of 100 packets without data came at once", n)
		}
	})
}
