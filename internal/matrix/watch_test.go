package matrix

import (
	"regexp"
	"slices"
	"testing"
)

// TestWatch: who watches is told of each row that is run, in order.
func TestWatch(t *testing.T) {
	var told, want []string
	cfg := Config{Figures: []int{2}, Match: regexp.MustCompile("figure 2/"), Watch: func(row string) { told = append(told, row) }}
	rows, err := List(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		want = append(want, r.Group+"/"+r.Name)
	}
	if _, err := Run(t.Context(), cfg); err != nil || !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q (%v)", told, want, err)
	}
}
