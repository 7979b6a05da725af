package probe

import (
	"slices"
	"testing"
)

// TestCompare puts matches in order, the most similar first.
func TestCompare(t *testing.T) {
	want := []Match{
		{Name: "all", Same: 4, Compared: 4},
		{Name: "most", Same: 18, Compared: 19},
		{Name: "half of many", Same: 10, Compared: 20},
		{Name: "half of few", Same: 4, Compared: 8},
		{Name: "some", Same: 7, Compared: 19},
		{Name: "none", Same: 0, Compared: 8},
		{Name: "too few", Same: 3, Compared: 3},
		{Name: "nothing to compare", Same: 0, Compared: 0},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, compare)
	for i := range want {
		if got[i].Name != want[i].Name {
			t.Errorf("%d: %q, want %q", i, got[i].Name, want[i].Name)
		}
	}
}
