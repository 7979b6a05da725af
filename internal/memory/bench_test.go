package memory

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// BenchmarkAccess is what each segment costs at the memory that it is of: that of a peer's
// Write, or of a receive; and the check of a request that is posted, which copies nothing.
func BenchmarkAccess(b *testing.B) {
	for _, n := range []int{64, 64 << 10} {
		table := NewTable()
		r, err := table.Register(make([]byte, n), Options{Access: allRemote, PD: pd})
		if err != nil {
			b.Fatal(err)
		}
		d, p := local(table), make([]byte, n)
		for _, c := range []struct {
			name   string
			access func() Fault
		}{
			{"Place", func() Fault { return d.Place(r.STag(), 0, layout.Plain(p)) }},
			{"LocalPlace", func() Fault { return d.LocalPlace(r, new(Term), 0, layout.Plain(p)) }},
			{"LocalCheck", func() Fault { return d.LocalCheck(r, new(Term), 0, n, true) }},
		} {
			b.Run(fmt.Sprintf("%s/size=%d", c.name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if f := c.access(); f != None {
						b.Fatal(f)
					}
				}
			})
		}
	}
}
