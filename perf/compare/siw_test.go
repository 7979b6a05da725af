package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// perftestLatency and perftestBandwidth are the ends of what perftest prints.
const perftestLatency = ` GID: 82:84:00:119:00:02:00:00:00:00:00:00:00:00:00:00
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
Correlation coefficient r^2: 0.756009 < 0.9
 64      200          40.81          28284.92      59.94    	       1305.53     	3185.30		20422.72 		28284.92
---------------------------------------------------------------------------------------
`

const perftestBandwidth = `---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      50               29.89              6.98   		   0.000112
---------------------------------------------------------------------------------------
`

// TestSiwValues reads two rounds from a console, whose lines end as a terminal's do.
func TestSiwValues(t *testing.T) {
	var console strings.Builder
	console.WriteString("RIG-UP 8.21\n")
	for round, ours := range []float64{119.88, 59.94} {
		for i, w := range siwWorks() {
			theirs, figure := perftestLatency, fmt.Sprintf(`"t_typical": %v`, ours)
			if !w.less {
				theirs, figure = perftestBandwidth, `"bw_average": 13.96`
			}
			fmt.Fprintf(&console, "%s %d %d theirs\n%s", siwMark, round+1, i, theirs)
			fmt.Fprintf(&console, "%s %d %d ours\n 50%%  half of it{\"results\": [{%s}]}\nTerminated\n", siwMark, round+1, i, figure)
		}
	}
	got, err := siwValues([]byte(strings.ReplaceAll(console.String(), "\n", "\r\n")))
	if err != nil || len(got) != len(siwWorks()) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, v := range got {
		want := 2.0
		if v.Less {
			want = 1.5 // of 2 and 1
		}
		if math.Abs(v.Ratio-want) > 1e-9 || v.Rounds != 2 {
			t.Errorf("%+v, want a ratio of %v", v, want)
		}
	}
	for _, bad := range []string{"", "RIG-UP 1\nRIG-EXIT 0\n", siwMark + " 1 0 theirs\nnothing\n", siwMark + " 1 0 ours\n{}\n",
		siwMark + " 1 0 theirs\n" + strings.ReplaceAll(perftestLatency, "59.94", "inf")} {
		if _, err := siwValues([]byte(bad)); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}
