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

// printed is what the console has of a turn. Over siw a message takes 59.94 us and the bandwidth is 6.98. iwarp perf
// takes what is given, and has twice the bandwidth; the program on the library takes three times as long, and has a
// quarter of it.
func (w siwWork) printed(by string, ours float64) string {
	switch {
	case by == siwOurs && w.less:
		return fmt.Sprintf(" 50%%  half of it{\"results\": [{\"t_typical\": %v}]}\nTerminated\n", ours)
	case by == siwOurs:
		return " 50%  half of it{\"results\": [{\"bw_average\": 13.96}]}\nTerminated\n"
	}
	table := perftestBandwidth
	if w.less {
		table = perftestLatency
	}
	if by == siwLibrary {
		table = strings.NewReplacer("59.94", "179.82", "6.98", "1.745").Replace(table)
	}
	return table
}

// TestSiwValues reads two rounds from a console, whose lines end as a terminal's do.
func TestSiwValues(t *testing.T) {
	var console strings.Builder
	console.WriteString("RIG-UP 8.21\n")
	for round, ours := range []float64{119.88, 59.94} {
		for i, w := range siwWorks() {
			for _, by := range []string{siwTheirs, siwOurs, siwLibrary} {
				fmt.Fprintf(&console, "%s %d %d %s\n%s", siwMark, round+1, i, by, w.printed(by, ours))
			}
		}
	}
	got, err := siwValues([]byte(strings.ReplaceAll(console.String(), "\n", "\r\n")))
	if err != nil || len(got) != 2*len(siwWorks()) {
		t.Fatalf("got %+v, %v", got, err)
	}
	// of latency, 1.5 is of 2 and 1, and of bandwidth
	wants := map[string][2]float64{ownPerf: {1.5, 2}, onLibrary: {3, 0.25}}
	for i, v := range got {
		if w := siwWorks()[i/2]; v.Program != w.program || v.Size != w.size || v.Less != w.less {
			t.Errorf("%+v is not of %+v", v, w)
		}
		want := wants[v.Tool][1]
		if v.Less {
			want = wants[v.Tool][0]
		}
		if math.Abs(v.Ratio-want) > 1e-9 || v.Rounds != 2 {
			t.Errorf("%+v, want a ratio of %v", v, want)
		}
	}
	without := strings.ReplaceAll(console.String(), " "+siwLibrary+"\n", " nobody\n")
	if got, err := siwValues([]byte(without)); err == nil {
		t.Errorf("without the program on the library: %+v, want an error", got)
	}
	for _, bad := range []string{"", "RIG-UP 1\nRIG-EXIT 0\n", siwMark + " 1 0 theirs\nnothing\n",
		siwMark + " 1 0 ours\n{}\n",
		siwMark + " 1 0 theirs\n" + strings.ReplaceAll(perftestLatency, "59.94", "inf")} {
		if _, err := siwValues([]byte(bad)); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

// TestPerftestFigure: a figure of a clock of no use is none, however it is printed.
func TestPerftestFigure(t *testing.T) {
	for _, useless := range []string{"0.00", "inf", "-nan"} {
		if x, err := perftestFigure(strings.Replace(perftestBandwidth, "6.98", useless, 1),
			"BW average[MB/sec]"); err == nil {
			t.Errorf("%s is read as %v", useless, x)
		}
	}
}

// TestSiwScript: the program on the library does what it does over siw, and the guest has what it loads.
func TestSiwScript(t *testing.T) {
	script := siwScript(8080, 3)
	for _, file := range []string{"iwarp", "libiwarp-engine.so", "libiwarp-preload.so"} {
		if want := "http://10.0.2.2:8080/" + file + " || exit 1\n"; !strings.Contains(script, want) {
			t.Errorf("the guest does not fetch %s", file)
		}
	}
	for i, w := range siwWorks() {
		theirs, library := w.command(siwTheirs), w.command(siwLibrary)
		if got := strings.NewReplacer("./iwarp run ", "", "18601",
			"18600").Replace(library); got != theirs || got == library {
			t.Errorf("on the library: %s, over siw: %s", library, theirs)
		}
		for _, by := range []string{siwTheirs, siwOurs, siwLibrary} {
			if want := fmt.Sprintf("echo %s $round %d %s; %s\n",
				siwMark, i, by, w.command(by)); !strings.Contains(script, want) {
				t.Errorf("no turn %q", want)
			}
		}
	}
}
