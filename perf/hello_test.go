package perf

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/ulpdata"
)

func TestHelloRoundTrip(t *testing.T) {
	for _, h := range []hello{
		{},
		{control: true, session: 0x0123456789abcdef},
		{markers: true, index: 7, session: 1, reads: 128},
		{noCRC: true, index: 0xffff, reads: 1},
	} {
		got, err := parseHello(h.encode())
		if diff := cmp.Diff(h, got, cmp.AllowUnexported(hello{})); diff != "" || err != nil {
			t.Errorf("%v (-sent +parsed):\n%s", err, diff)
		}
	}
}

func TestHelloOfOthers(t *testing.T) {
	for _, text := range []string{"", "iwp", "GET / HTTP/1.1\r\n", strings.Repeat("\x00", 100)} {
		if _, err := parseHello([]byte(text)); !errors.Is(err, errNotPerf) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	whole := hello{}.encode()
	if _, err := parseHello(whole[:helloLen-1]); !errors.Is(err, errNotPerf) {
		t.Errorf("cut off: got %v", err)
	}
	other := hello{}.encode()
	other[4] = 9
	if _, err := parseHello(other); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("version 9: got %v", err)
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add(hello{control: true, session: 1}.encode())
	f.Add([]byte("iwpf\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			return
		}
		again, err := parseHello(h.encode())
		if again != h || err != nil {
			t.Errorf("%+v became %+v, %v", h, again, err)
		}
	})
}

// TestHelloKnown has package ulpdata, which knows a hello by its mark, name this program.
func TestHelloKnown(t *testing.T) {
	for _, h := range []hello{{}, {control: true, session: 1}, {index: 1, reads: 1}} {
		if got := ulpdata.Describe(h.encode()); !strings.HasPrefix(got, "like iwarp perf, ") {
			t.Error(got)
		}
	}
}
