package main

import (
	"fmt"
	"strconv"

	"github.com/goiwarp/iwarp/perf"
)

// figure is a number with three digits that count, or a dash if there is none.
func figure(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// microseconds is a time of so many, in five columns. Long ones have a unit of their own.
func microseconds(x float64) string {
	switch {
	case x < 99_999.5:
		return figure(x)
	case x < 999_500:
		return figure(x/1e3) + "ms"
	}
	return figure(x/1e6) + "s"
}

// sizeText is a number of bytes.
func sizeText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// A unit is one of a rate.
type unit struct {
	per  float64 // that of which there is one in the unit
	name string
}

var (
	messageUnits = []unit{{1e6, "M/s"}, {1e3, "k/s"}, {1, "/s"}}
	bitUnits     = []unit{{1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}}
)

// unitFor is the greatest of units of which a rate has a tenth, or the least.
func unitFor(rate float64, units []unit) unit {
	for _, u := range units {
		if rate >= u.per/10 {
			return u
		}
	}
	return units[len(units)-1]
}

// smallest is from which size on what counts is bits, and not messages.
const smallest = 1 << 10

// A throughput is a row's, over iWARP and over plain TCP, in one unit.
type throughput struct {
	ours, tcp float64
	unit      string
}

func throughputOf(r perf.Result) throughput {
	of, units := bits, bitUnits
	if r.Size < smallest {
		of, units = messages, messageUnits
	}
	x := throughput{ours: of(&r.Figures), tcp: of(r.TCP)}
	u := unitFor(max(x.ours, x.tcp), units)
	return throughput{x.ours / u.per, x.tcp / u.per, u.name}
}

// bits and messages are how many go in a second; none if they were not measured.
func bits(f *perf.Figures) float64 {
	if f == nil {
		return 0
	}
	return f.BWAverage * (8 << 20)
}

func messages(f *perf.Figures) float64 {
	if f == nil {
		return 0
	}
	return f.MsgRate * 1e6
}

// countText is a number of things in words.
func countText(x float64) string {
	switch {
	case x >= 1e5:
		return figure(x/1e6) + " million"
	case x >= 1e3:
		return figure(x/1e3) + " thousand"
	}
	return figure(x)
}

// bitsText is a rate with its unit.
func bitsText(rate float64) string {
	u := unitFor(rate, bitUnits)
	return figure(rate/u.per) + " " + u.name
}

// latencyText is a time of so many microseconds with its unit.
func latencyText(x float64) string {
	if x >= 999.5 {
		return figure(x/1e3) + " ms"
	}
	return figure(x) + " µs"
}

// aheadText is the part of the data that was placed before earlier data had come.
func aheadText(r perf.Result) string { return fmt.Sprintf("%.1f %%", 100*r.Ahead) }

// ratioText is a ratio with as many digits as it is worth. A ~ is in front of one that another run would not repeat.
func ratioText(ratio float64, repeats bool) string {
	digits := 2
	switch {
	case ratio == 0:
		return "-"
	case ratio >= 99.95, !repeats && ratio >= 9.95:
		digits = 0
	case ratio >= 9.995, !repeats && ratio >= 0.995:
		digits = 1
	}
	text := strconv.FormatFloat(ratio, 'f', digits, 64) + "x"
	if !repeats {
		return "~" + text
	}
	return text
}
