package main

import (
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// TestFigures: numbers have the digits that count, and fit their columns.
func TestFigures(t *testing.T) {
	for _, test := range []struct {
		x                   float64
		number, time, other string
	}{
		{0, "-", "-", "- µs"},
		{0.034, "0.03", "0.03", "0.03 µs"},
		{9.994, "9.99", "9.99", "9.99 µs"},
		{9.996, "10.0", "10.0", "10.0 µs"},
		{99.96, "100", "100", "100 µs"},
		{1234.5, "1234", "1234", "1.23 ms"},
		{99_999.4, "99999", "99999", "100 ms"},
		{250_000, "250000", "250ms", "250 ms"},
		{2_500_000, "2500000", "2.50s", "2500 ms"},
	} {
		if got := figure(test.x); got != test.number {
			t.Errorf("%v: %q, want %q", test.x, got, test.number)
		}
		if got := microseconds(test.x); got != test.time {
			t.Errorf("%v microseconds: %q, want %q", test.x, got, test.time)
		}
		if got := latencyText(test.x); got != test.other {
			t.Errorf("%v microseconds: %q, want %q", test.x, got, test.other)
		}
	}
}

// TestRatioDigits: one that another run would not repeat has fewer digits, and a mark.
func TestRatioDigits(t *testing.T) {
	for ratio, want := range map[float64][2]string{
		0: {"-", "-"}, 0.0349: {"0.03x", "~0.03x"}, 0.949: {"0.95x", "~0.95x"}, 1.04: {"1.04x", "~1.0x"},
		1.349: {"1.35x", "~1.3x"}, 9.96: {"9.96x", "~10x"}, 13.24: {"13.2x", "~13x"}, 134.2: {"134x", "~134x"},
	} {
		if got := [2]string{ratioText(ratio, true), ratioText(ratio, false)}; got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}

// TestSizeText names sizes as their options do.
func TestSizeText(t *testing.T) {
	for n, want := range map[int]string{1: "1 B", 1000: "1000 B", 1024: "1 KiB", 1500: "1500 B", 64 << 10: "64 KiB",
		1 << 20: "1 MiB", 1<<20 + 1024: "1025 KiB", 8 << 20: "8 MiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestThroughput: small messages are counted, and of large ones their bits, both transports in one unit.
func TestThroughput(t *testing.T) {
	for _, test := range []struct {
		size      int
		ours, tcp perf.Figures
		want      throughput
	}{
		{64, perf.Figures{MsgRate: 2.5}, perf.Figures{MsgRate: 0.05}, throughput{2.5, 0.05, "M/s"}},
		{1023, perf.Figures{MsgRate: 0.0625}, perf.Figures{MsgRate: 0.03125}, throughput{62.5, 31.25, "k/s"}},
		{64, perf.Figures{MsgRate: 0.00003125}, perf.Figures{}, throughput{31.25, 0, "/s"}},
		{1024, perf.Figures{BWAverage: 1e9 / (8 << 20)}, perf.Figures{BWAverage: 4e9 / (8 << 20)},
			throughput{1, 4, "Gb/s"}},
		{1 << 20, perf.Figures{BWAverage: 2e7 / (8 << 20)}, perf.Figures{}, throughput{20, 0, "Mb/s"}},
		{1 << 20, perf.Figures{BWAverage: 2e3 / (8 << 20)}, perf.Figures{}, throughput{2, 0, "kb/s"}},
	} {
		r := perf.Result{Size: test.size, Figures: test.ours, TCP: &test.tcp}
		if got := throughputOf(r); got != test.want {
			t.Errorf("%d bytes: %+v, want %+v", test.size, got, test.want)
		}
	}
}
