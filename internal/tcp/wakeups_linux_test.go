package tcp

import "testing"

// TestRelease reads what uname(2) says.
func TestRelease(t *testing.T) {
	for s, want := range map[string][2]int{
		"6.18.44":              {6, 18},
		"4.19.0-27-amd64":      {4, 19},
		"2.90.1":               {2, 90},
		"5.15.167.4-microsoft": {5, 15},
		"6.1-rc3":              {6, 1},
		"7":                    {7, 0},
		"":                     {0, 0},
		"next-20260101":        {0, 0},
	} {
		if major, minor := release(s); [2]int{major, minor} != want {
			t.Errorf("%q: %d.%d", s, major, minor)
		}
	}
}

// TestTellsOfLower knows from which kernel on a socket can be suppressed.
func TestTellsOfLower(t *testing.T) {
	for v, want := range map[[2]int]bool{{4, 17}: false, {4, 18}: true, {4, 20}: true, {5, 0}: true, {6, 1}: true,
		{3, 18}: false, {0, 0}: false} {
		if tellsOfLower(v[0], v[1]) != want {
			t.Errorf("%v: %t", v, !want)
		}
	}
}
