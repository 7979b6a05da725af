package mpa

import "testing"

// A key is found where it begins, even if its end has not come yet; another beginning of one before it is none.
func TestFindKey(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{
		{"", 0},
		{"M", 0},
		{"MPA", 0},
		{"MPA ID Req Frame", 0},
		{"xMPA ID Req Frame", 1},
		{"MPxMPA ", 3},
		{"MPAMPA ", 3},
		{"MPA MPA ", 0},
		{"x", 1},
		{"xM", 1},
		{"xMP", 1},
		{"xMPA", 1},
		{"xMPAx", 5},
		{"MPAx", 4},
		{"1234567M", 7},
		{"1234567MPA", 7},
		{"1234567MPB", 10},
		{"MMMM", 3},
	} {
		if got := FindKey([]byte(c.in)); got != c.want {
			t.Errorf("%q: %d, want %d", c.in, got, c.want)
		}
	}
}
