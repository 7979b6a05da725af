package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestLossValues reads a console, whose lines end as a terminal's do. A link of which it says nothing is an error.
func TestLossValues(t *testing.T) {
	var console strings.Builder
	console.WriteString("RIG-UP 8.21\n")
	for i := range lossyLinks() {
		fmt.Fprintf(&console, `%s %d
 50%%  half of it{"results": [{"op": "Write", "size": 65536, "bw_average": %d, "tcp": {"bw_average": 2}, "pairs_bw": 100, "ratio_bw": %d.5, "ratio_quartiles": {"ratio_bw": [8.25, 8.75]}}]}
`, lossMark, i, i, i)
	}
	all, err := lossValues([]byte(strings.ReplaceAll(console.String(), "\n", "\r\n")))
	if err != nil || len(all) != len(lossyLinks()) {
		t.Fatalf("got %+v, %v", all, err)
	}
	for i, l := range all {
		if l.Result.BWAverage != float64(i) || l.Result.RatioBW != float64(i)+0.5 {
			t.Errorf("link %d has %+v", i, l.Result)
		}
	}
	table := lossTable(&record{Loss: all})
	if want := "| 50ms | 1 % | 8.00 MiB/s | 2.00 MiB/s | 8.50 (8.25 - 8.75) | "; !strings.Contains(table, want) {
		t.Errorf("%s\nhas no %s", table, want)
	}
	if strings.Contains(table, "99 %") {
		t.Errorf("there is a 99th percentile of a few round trips in a slice:\n%s", table)
	}
	if all, err := lossValues([]byte("RIG-UP 1\r\n" + lossMark + " 0\r\n{}\r\n")); err == nil {
		t.Errorf("got %+v of nothing", all)
	}
}
