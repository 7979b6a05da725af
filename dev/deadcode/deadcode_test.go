package main

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestSmall looks at a module with a function and a method that nothing runs but tests.
func TestSmall(t *testing.T) {
	g, err := load("testdata/small", "bridge")
	testrig.Must(t, err)
	const no = ": nothing in the product calls it"
	function, method, bridge := "rules.Dead"+no, "rules.Kind.Dead"+no, "bridge.small_dead"+no
	for _, c := range []struct {
		name                string
		libraries, forTests []string
		excused             map[node]string
		want                []string
	}{
		{"the root is a library", []string{""}, nil, nil, []string{bridge, function, method}},
		{"so is what there is not", []string{"", "other"}, nil, nil, []string{bridge, function, method}},
		{"all that is exported", []string{"", "rules"}, nil, nil, []string{bridge}},
		{"commands alone", nil, nil, nil, []string{
			bridge, "example.com/small.Do" + no, "example.com/small.describe" + no, function, method,
			"rules.Kind.String" + no, "rules.Used" + no, "rules.within" + no,
		}},
		{"packages for tests", []string{""}, []string{"rules", "bridge"}, nil, nil},
		{"an excuse", []string{""}, nil, map[node]string{"rules.Dead": "a test asks"}, []string{bridge, method}},
		{"excuses too many", []string{"", "rules"}, nil,
			map[node]string{"rules.Used": "nobody", "rules.Gone": "nobody"},
			[]string{bridge, "rules.Gone needs no excuse", "rules.Used needs no excuse"}},
	} {
		if got := g.check(c.libraries, c.forTests, c.excused); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
