package iwarp_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestSteps: CONTRIBUTING.md has a row for each step of .ci/run, and for nothing else.
func TestSteps(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	must(t, err)
	page, err := os.ReadFile("CONTRIBUTING.md")
	must(t, err)
	named := func(text []byte, row string) (names []string) {
		for _, m := range regexp.MustCompile(row).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		slices.Sort(names)
		return names
	}
	steps, rows := named(script, `(?m)^step_(\w+)\(\)`), named(page, "(?m)^\\| `(\\w+)` \\|")
	if !slices.Equal(steps, rows) || len(steps) < 10 {
		t.Errorf("the steps are %q, and CONTRIBUTING.md has %q", steps, rows)
	}
}
