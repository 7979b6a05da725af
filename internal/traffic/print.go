package traffic

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

const (
	barLength = 24
	topSTags  = 10
)

// Print prints what there was.
func (s *Stats) Print(w io.Writer) error {
	out := bufio.NewWriter(w)
	if s.series.used == 0 {
		fmt.Fprintln(out, "no FPDU")
		return out.Flush()
	}
	s.throughput(out)
	s.latencies(out)
	s.top(out)
	return out.Flush()
}

// throughput prints bytes over time.
func (s *Stats) throughput(w io.Writer) {
	fmt.Fprintf(w, "throughput, in MB/s of payload over %v each\n", s.series.step)
	fmt.Fprintf(w, "  %12s", "from")
	for _, name := range kinds {
		fmt.Fprintf(w, " %9s", name)
	}
	fmt.Fprintln(w)
	most := uint64(1)
	for i := range s.series.used {
		most = max(most, sum(s.series.bytes[i]))
	}
	for i := range s.series.used {
		fmt.Fprintf(w, "  %10.4f s", (time.Duration(i) * s.series.step).Seconds())
		for _, n := range s.series.bytes[i] {
			fmt.Fprintf(w, " %9.2f", float64(n)/1e6/s.series.step.Seconds())
		}
		full := int(sum(s.series.bytes[i]) * barLength / most)
		fmt.Fprintln(w, strings.TrimRight("  "+strings.Repeat("█", full), " "))
	}
}

func sum(all [len(kinds)]uint64) (n uint64) {
	for _, one := range all {
		n += one
	}
	return n
}

// latencies prints how long operations took.
func (s *Stats) latencies(w io.Writer) {
	fmt.Fprintf(w, "time\n  %-28s %8s", "", "count")
	for _, name := range []string{"min", "50%", "90%", "99%", "99.9%", "max"} {
		fmt.Fprintf(w, " %9s", name)
	}
	fmt.Fprintln(w)
	for kind, h := range s.times {
		if h == nil {
			continue
		}
		fmt.Fprintf(w, "  %-28s %8d", kindsOfTime[kind], h.TotalCount())
		for _, p := range []float64{0, 50, 90, 99, 99.9, 100} {
			fmt.Fprintf(w, " %9s", short(time.Duration(h.ValueAtQuantile(p))))
		}
		fmt.Fprintf(w, "\n  %28s slowest: connection #%s, packet %d\n", "", s.slow[kind].label, s.slow[kind].packet)
	}
}

// short is a time with three digits or four.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// top prints the STags with most bytes.
func (s *Stats) top(w io.Writer) {
	if len(s.stags) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(s.stags), func(a, b stag) int {
		return cmp.Or(cmp.Compare(s.stags[b].bytes, s.stags[a].bytes), cmp.Compare(a.connection, b.connection),
			cmp.Compare(a.dir, b.dir), cmp.Compare(a.stag, b.stag), strings.Compare(use(a), use(b)))
	})
	fmt.Fprintln(w, "STags with most bytes: written to by the other end, or read from by it")
	for _, k := range keys[:min(len(keys), topSTags)] {
		fmt.Fprintf(w, "  %#08x #%-4s %v %-6s %10d %-8s %14d bytes\n", k.stag, k.connection, k.dir, use(k),
			s.stags[k].messages, wording.Things(s.stags[k].messages, "message"), s.stags[k].bytes)
	}
	rest := s.others
	for _, k := range keys[min(len(keys), topSTags):] {
		rest.messages += s.stags[k].messages
		rest.bytes += s.stags[k].bytes
	}
	if rest.messages > 0 {
		fmt.Fprintf(w, "  %-27s %10d %-8s %14d bytes\n", "all others", rest.messages,
			wording.Things(rest.messages, "message"), rest.bytes)
	}
}

func use(k stag) string { return wording.If(k.read, "Reads", "Writes") }
