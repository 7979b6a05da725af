//go:build interop && linux

package align_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/quantile"
	"github.com/goiwarp/iwarp/internal/wording"
)

// TestCompare measures what alignment costs: the same work on two connections, of which one
// has FPDUs aligned, in turn. It prints the medians of the ratios of their bandwidths and of
// the processor time of both ends, with quartiles, and decides nothing. The latter says more
// on a machine with other work. IWARP_ALIGN_COMPARE=large has FPDUs of up to 64 KiB in place of those that are not
// aligned.
func TestCompare(t *testing.T) {
	if os.Getenv("IWARP_ALIGN_COMPARE") == "" {
		t.Skip("a measurement: IWARP_ALIGN_COMPARE=1 has it made")
	}
	t.Logf("%5s %-7s %-20s %10s %24s %24s", "MTU", "markers", "work", "MiB/s", "aligned / other", "CPU time")
	for _, mtu := range []int{1500, 1450, 9000} {
		t.Run(fmt.Sprintf("MTU %d", mtu), func(t *testing.T) {
			l := newLink(t, mtu, true)
			for _, markers := range []bool{false, true} {
				for _, w := range workloads {
					c := l.compare(t, markers, w)
					t.Logf("%5d %-7s %-20s %10.0f %24s %24s",
						mtu, wording.OnOff(markers), w.name, quantile.Median(c.rate), c.bandwidth, c.cpu)
				}
			}
		})
	}
}

// A comparison has bandwidths with alignment, in MiB/s, and ratios to those without.
type comparison struct {
	rate           []float64
	bandwidth, cpu ratios
}

type ratios []float64

func (r ratios) String() string {
	lower, upper := quantile.Quartiles(r)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", quantile.Median(r), lower, upper)
}

// compare runs the work 21 times each way.
func (l *link) compare(t *testing.T, markers bool, w workload) (c comparison) {
	t.Helper()
	const total, pairs = 8 << 20, 21
	lanes := [2]func() spent{}
	for i, fpdus := range []iwarp.FPDUs{iwarp.FPDUsAligned, others()} {
		a, b := l.connect(t, markers, fpdus, total)
		lanes[i] = func() spent {
			begin := now()
			w.run(a, b)
			end := now()
			return spent{end.wall - begin.wall, end.cpu - begin.cpu}
		}
		defer closeBoth(a, b)
		for range 3 {
			lanes[i]() // until the windows have settled
		}
	}
	for pair := range pairs {
		var took [2]spent
		for i := range lanes {
			lane := (i + pair) % 2
			took[lane] = lanes[lane]()
		}
		c.rate = append(c.rate, total/took[0].wall.Seconds()/(1<<20))
		c.bandwidth = append(c.bandwidth, took[1].wall.Seconds()/took[0].wall.Seconds())
		c.cpu = append(c.cpu, took[0].cpu.Seconds()/took[1].cpu.Seconds())
	}
	return c
}

// others are the FPDUs that aligned ones are compared with.
func others() iwarp.FPDUs {
	if os.Getenv("IWARP_ALIGN_COMPARE") == "large" {
		return iwarp.FPDUsLarge
	}
	return iwarp.FPDUsUnaligned
}

// spent is time, and the processor time of the process.
type spent struct{ wall, cpu time.Duration }

var began = time.Now()

func now() spent { return spent{time.Since(began), procstat.CPUTime()} }
