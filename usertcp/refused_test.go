package usertcp

import (
	"errors"
	"math"
	"strings"
	"syscall"
	"testing"
)

// TestPairRefuses: a Path out of range, by name.
func TestPairRefuses(t *testing.T) {
	for want, p := range map[string]Path{
		"Loss": {Loss: 3}, "Duplicate": {Duplicate: -1}, "Reorder": {Reorder: math.NaN()}, "negative": {Delay: -1},
	} {
		for _, paths := range [][2]Path{{p, {}}, {{}, p}} {
			if _, _, err := Pair(Config{}, paths[0], paths[1]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
	if _, _, err := Pair(Config{CongestionControl: "bbr"}, Path{}, Path{}); err == nil || !strings.Contains(err.Error(), `"cubic"`) {
		t.Errorf("bbr: %v", err)
	}
}

// TestDialItself: a connection to the Stack itself cannot be, and is refused at once.
func TestDialItself(t *testing.T) {
	a, b, err := Pair(Config{}, Path{}, Path{})
	must(t, err)
	defer b.Close()
	defer a.Close()
	for _, to := range []string{"192.0.2.1:7", "[2001:db8::1]:7", "[::ffff:192.0.2.1]:7", "0.0.0.0:7", "127.0.0.1:7"} {
		if _, err := a.DialContext(t.Context(), "tcp", to); !errors.Is(err, syscall.EHOSTUNREACH) || !strings.Contains(err.Error(), "itself") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
