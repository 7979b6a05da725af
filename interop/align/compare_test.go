//go:build interop && linux

package align_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/spread"
	"github.com/goiwarp/iwarp/internal/wording"
)

// TestCompare measures what alignment costs: the same work on two connections, of which one
// has FPDUs aligned, in turn. It prints the median of the ratios of their bandwidths, with
// quartiles, and decides nothing.
func TestCompare(t *testing.T) {
	if os.Getenv("IWARP_ALIGN_COMPARE") == "" {
		t.Skip("a measurement: IWARP_ALIGN_COMPARE=1 has it made")
	}
	t.Logf("%5s %-7s %-20s %10s %24s", "MTU", "markers", "work", "MiB/s", "aligned / unaligned")
	for _, mtu := range []int{1500, 1450, 9000} {
		t.Run(fmt.Sprintf("MTU %d", mtu), func(t *testing.T) {
			l := newLink(t, mtu, true)
			for _, markers := range []bool{false, true} {
				for _, w := range workloads {
					rate, ratios := l.compare(t, markers, w)
					lower, upper := spread.Quartiles(ratios)
					t.Logf("%5d %-7s %-20s %10.0f %8.2f (%.2f to %.2f)", mtu, wording.OnOff(markers), w.name, rate, spread.Median(ratios), lower, upper)
				}
			}
		})
	}
}

// compare returns the bandwidth with alignment, in MiB/s, and the ratios in order.
func (l *link) compare(t *testing.T, markers bool, w workload) (rate float64, ratios []float64) {
	t.Helper()
	const octets, pairs = 8 << 20, 21
	lanes := [2]func() time.Duration{}
	for i, fpdus := range []iwarp.FPDUs{iwarp.FPDUsAligned, iwarp.FPDUsUnaligned} {
		a, b := l.connect(t, markers, fpdus, octets)
		lanes[i] = func() time.Duration {
			begin := time.Now()
			w.run(a, b)
			return time.Since(begin)
		}
		defer closeBoth(a, b)
		for range 3 {
			lanes[i]() // until the windows have settled
		}
	}
	var rates []float64
	for pair := range pairs {
		var took [2]time.Duration
		for i := range lanes {
			lane := (i + pair) % 2
			took[lane] = lanes[lane]()
		}
		rates = append(rates, octets/took[0].Seconds()/(1<<20))
		ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
	}
	slices.Sort(rates)
	return rates[pairs/2], ratios
}
