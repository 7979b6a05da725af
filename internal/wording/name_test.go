package wording_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/wording"
)

func TestName(t *testing.T) {
	type color uint8
	names := []string{"red", "green"}
	for v, want := range map[color]string{0: "red", 1: "green", 2: "color 2"} {
		if got := wording.Name(v, "color", names); got != want {
			t.Errorf("%d: %q, want %q", v, got, want)
		}
	}
}
