package perf

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/mpa"
)

func TestOptionsDefaults(t *testing.T) {
	got, err := Options{}.resolved()
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		Ops: []Op{Send, Write, Read}, Sizes: []int{64, 4096, 65536, 1048576},
		Duration: DefaultDuration, QPs: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for size, slots := range map[int]int{64: 128, 32 << 10: 128, 64 << 10: 64, 1 << 20: 4, 16 << 20: 4} {
		if n := got.slots(size); n != slots {
			t.Errorf("%d octets: %d slots, want %d", size, n, slots)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, test := range []struct {
		opts Options
		want string
	}{
		{Options{Ops: []Op{0}}, "op"},
		{Options{Sizes: []int{0}}, "size"},
		{Options{Sizes: []int{64, MaxSize + 1}}, "size"},
		{Options{Depth: 1}, "depth"},
		{Options{Depth: MaxDepth + 1}, "depth"},
		{Options{Sizes: []int{MaxSize}, Depth: 64}, "depth"},
		{Options{QPs: MaxQPs + 1}, "qps"},
		{Options{QPs: -1}, "qps"},
		{Options{Duration: -time.Second}, "duration"},
		{Options{Dialect: 99}, "dialect"},
		{Options{Peer: "nobody"}, "peer"},
	} {
		_, err := test.opts.resolved()
		var refused *OptionError
		if !errors.As(err, &refused) || refused.Option != test.want {
			t.Errorf("%+v: got %v, want an error about %s", test.opts, err, test.want)
		}
	}
}

func TestOptionsTravel(t *testing.T) {
	want := Options{
		Ops: []Op{Read, Send}, Sizes: []int{1, 2}, Depth: 5, Duration: time.Second, QPs: 3,
		Markers: true, NoCRC: true, Dialect: mpa.DialectRtr, Kind: mpa.KindNonPermissive, Peer: "siw",
		NoBaseline: true, Corrupt: true,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Options
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
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
	for text, want := range map[string]Op{"Send": Send, "write": Write, "READ": Read} {
		if got, err := ParseOp(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if _, err := ParseOp("atomic"); err == nil {
		t.Error("atomic: want an error")
	}
}
