package wording_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/wording"
)

func TestName(t *testing.T) {
	type colour uint8
	names := []string{"red", "green"}
	for v, want := range map[colour]string{0: "red", 1: "green", 2: "colour 2"} {
		if got := wording.Name(v, "colour", names); got != want {
			t.Errorf("%d: %q, want %q", v, got, want)
		}
	}
}
