package wording

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0, "error"), "0 errors"},
		{Count(1, "error"), "1 error"},
		{Count(uint64(1<<63), "error"), "9223372036854775808 errors"},
		{Bytes(1), "1 byte"},
		{Bytes(uint64(2)), "2 bytes"},
		{OnOff(true), "on"},
		{OnOff(false), "off"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestElapsed has no time that was not zero be said as none.
func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Second: "10s", 10001200 * time.Microsecond: "10.001s", 1700 * time.Microsecond: "2ms",
		time.Millisecond: "1ms", 100200 * time.Nanosecond: "100µs", 0: "0s",
	} {
		if got := Elapsed(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    []string
	}{
		{"", 10, nil},
		{"  ", 10, nil},
		{"one", 3, []string{"one"}},
		{"one two  three", 7, []string{"one two", "three"}},
		{"seventeen", 4, []string{"seve", "ntee", "n"}},
		{"a seventeen b", 4, []string{"a", "seve", "ntee", "n b"}},
		{"größer ärger", 6, []string{"größer", "ärger"}},
	} {
		if got := slices.Collect(Lines(c.text, c.columns)); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: got %q, want %q", c.text, c.columns, got, c.want)
		}
	}
	for range Lines("one two three", 3) {
		break // a caller may stop
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1 << 10: "1 KiB", 1000001: "976.56 KiB (1000001 bytes)", 3 << 29: "1.5 GiB",
		1<<30 - 512: "1024 MiB (1073741312 bytes)", 5 << 38: "1.25 TiB", 1 << 62: "4096 PiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1000": 1000, "3K": 3 << 10, "256M": 256 << 20, "2g": 2 << 30, "8589934591G": 8589934591 << 30,
		"": -1, "K": -1, "-1": -1, "1T": 1 << 40, "8388608t": -1, "1P": -1, "64KB": -1, "1.5M": -1, "8589934592G": -1, "9223372036854775808": -1,
	} {
		if got, err := ParseBytes(text); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: got %d (%v)", text, got, err)
		}
	}
	if _, err := ParseBytes("9999999999999T"); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
