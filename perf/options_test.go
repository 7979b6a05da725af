package perf

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

func TestOptionsDefaults(t *testing.T) {
	got, err := Options{}.Resolved()
	testrig.Must(t, err)
	want := Options{
		Network: "tcp", Ops: []Op{Send, Write, Read}, Sizes: []int{64, 4096, 65536, 1048576},
		Duration: DefaultDuration, QPs: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for size, want := range map[int][2]int{
		1: {128, 512}, 64: {128, 512}, 1 << 10: {128, 512}, 2 << 10: {128, 256},
		4 << 10: {128, 128}, 64 << 10: {128, 128},
		256 << 10: {64, 64}, 1 << 20: {16, 16}, 16 << 20: {4, 4},
	} {
		if depths := [2]int{got.slots(Write, size), got.slots(Send, size)}; depths != want {
			t.Errorf("%d bytes: %d Writes under way, and Sends ahead, want %d", size, depths, want)
		}
	}
}

// TestSlices cuts the time for a quantity.
func TestSlices(t *testing.T) {
	for _, test := range []struct {
		duration time.Duration
		pairs    int
		slice    time.Duration
	}{
		{time.Millisecond, 5, 200 * time.Microsecond},
		{DefaultDuration, 20, 10 * time.Millisecond},
		{600 * time.Millisecond, 60, 10 * time.Millisecond},
		{2 * time.Second, 100, 20 * time.Millisecond},
		{time.Minute, 100, 600 * time.Millisecond},
	} {
		o := Options{Duration: test.duration}
		if got := o.cut(Bandwidth, 0); got != (cut{test.pairs, test.slice}) || o.Pairs() != test.pairs {
			t.Errorf("%v: %+v, want %d pairs of slices of %v", test.duration, got, test.pairs, test.slice)
		}
	}
}

// TestReceives: how many there are where nobody says.
func TestReceives(t *testing.T) {
	for _, test := range []struct {
		opts       Options
		size, want int
	}{
		{Options{}, 64, 512},
		{Options{Depth: 4}, 64, 512},
		{Options{Depth: 512}, 64, 2048},
		{Options{Depth: MaxDepth}, 64, MaxDepth},
		{Options{Depth: MaxDepth}, 2, MaxDepth},
		{Options{Depth: 512}, 1024, 512},
		{Options{Depth: 512}, 4096, 512},
		{Options{Depth: 256}, 1024, 512},
		{Options{}, 4096, 128},
		{Options{}, 1 << 20, 16},
		{Options{Depth: 512, RXDepth: 700}, 64, 700},
	} {
		if got := test.opts.rxDepth(test.size); got != test.want {
			t.Errorf("%+v has %d receives for messages of %d bytes, want %d", test.opts, got, test.size, test.want)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	tooMany := maxCount
	tooMany++ // beyond what int holds of 32 bits it is negative, which is refused too
	for _, test := range []struct {
		opts Options
		want string
	}{
		{Options{Ops: []Op{0}}, "op"},
		{Options{Sizes: []int{0}}, "size"},
		{Options{Sizes: []int{64, MaxSize + 1}}, "size"},
		{Options{Depth: -1}, "depth"},
		{Options{Depth: MaxDepth + 1}, "depth"},
		{Options{RXDepth: MaxDepth + 1}, "rx-depth"},
		{Options{RXDepth: DefaultDepth - 1}, "rx-depth"},
		{Options{Depth: 3, RXDepth: 2}, "rx-depth"},
		{Options{Depth: 1, RXDepth: 1}, "rx-depth"},
		{Options{Sizes: []int{MaxSize}, Depth: 64}, "depth"},
		{Options{QPs: MaxQPs + 1}, "qps"},
		{Options{QPs: -1}, "qps"},
		{Options{Duration: -time.Second}, "duration"},
		{Options{Iters: -1}, "iters"},
		{Options{Iters: tooMany}, "iters"},
		{Options{CC: "a b"}, "cc"},
		{Options{Inline: MaxInline + 1}, "inline"},
		{Options{PostList: -1}, "post-list"},
		{Options{CQMod: MaxDepth + 1}, "cq-mod"},
		{Options{CC: "longer-than-16-o"}, "cc"},
		{Options{Dialect: 99}, "dialect"},
		{Options{Peer: "nobody"}, "peer"},
		{Options{Network: "pigeons"}, "network"},
		{Options{Network: "sctp", Markers: true}, "markers"},
		{Options{Network: "sctp", Reorder: 101}, "reorder"},
		{Options{Reorder: 1}, "reorder"},
		{Options{Network: "sctp:kernel", Reorder: 1}, "reorder"},
		{Options{Network: "sctp", NoCRC: true}, "crc"},
		{Options{Network: "sctp", CC: "reno"}, "cc"},
		{Options{Network: "sctp", Dialect: mpa.DialectRtr}, "dialect"},
		{Options{Network: "sctp", Kind: mpa.KindRDMAC}, "kind"},
	} {
		_, err := test.opts.Resolved()
		var refused *OptionError
		if !errors.As(err, &refused) || refused.Option != test.want {
			t.Errorf("%+v: got %v, want an error about %s", test.opts, err, test.want)
		}
	}
}

func TestOptionsTravel(t *testing.T) {
	want := Options{
		Network: "sctp", Reorder: 3, Ops: []Op{Read, Send}, Sizes: []int{1, 2}, Depth: 5, RXDepth: 9,
		Duration: time.Second, QPs: 3,
		Markers: true, NoCRC: true, Dialect: mpa.DialectRtr, Kind: mpa.KindNonPermissive, Peer: "siw",
		NoBaseline: true, Corrupt: true, Poll: true, Iters: 1000, Inline: 64, Bidirectional: true, PostList: 4,
		CQMod: 8, CC: "reno", KeepDisturbed: true,
	}
	text, err := json.Marshal(want)
	testrig.Must(t, err)
	var got Options
	testrig.Must(t, json.Unmarshal(text, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "64": 64, "4K": 4096, "4k": 4096, "1M": 1 << 20, "64m": MaxSize} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "K", "1G", "65M", "9999999999999999999K", "1.5K"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func TestParseOp(t *testing.T) {
	for text, want := range map[string]Op{"Send": Send, "write": Write, "READ": Read,
		"Write-Imm": WriteImm, "atomic": Atomic} {
		if got, err := ParseOp(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if _, err := ParseOp("swap"); err == nil {
		t.Error("swap: want an error")
	}
}

// TestIters: messages that are counted are cut into slices whatever the duration, so that their number means the same
// in every run.
func TestIters(t *testing.T) {
	for iters, want := range map[int][2]int{1: {5, 2}, 52: {5, 11}, 200: {5, 40}, 1000: {25, 40}, 100_000: {40, 2500}} {
		for _, d := range []time.Duration{0, time.Millisecond, time.Hour} {
			m := measurement{opts: Options{Iters: iters, Duration: d}}
			if pairs, each := m.opts.Pairs(), m.firstCount(job{}, m.opts.Pairs()); pairs != want[0] || each != want[1] {
				t.Errorf("%d messages: %d slices of %d, want %d", iters, pairs, each, want)
			}
		}
	}
	o, err := Options{Iters: 7}.Resolved()
	if testrig.Must(t, err); o.Duration != 0 {
		t.Errorf("messages are counted, and the duration is %v", o.Duration)
	}
}
