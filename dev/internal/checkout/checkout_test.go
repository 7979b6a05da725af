package checkout

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goiwarp/iwarp/dev/internal/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestHere: sources that differ from the commit count as changes, whether git knows them or not and from wherever in
// the repository that is asked; documents and figures do not.
func TestHere(t *testing.T) {
	for _, c := range []struct {
		changed string
		want    bool
	}{
		{"nothing", false},
		{"main.go", true}, {"go.mod", true}, {"go.sum", true}, // main.go and README.md are in the commit
		{"deep/down/new.go", true}, {"fold.s", true}, {"load.c", true}, {"objects.h", true},
		{"interop/siw-vm/init", true},
		{"README.md", false}, {"perf.json", false}, {"docs/performance.md", false},
	} {
		t.Run(c.changed, func(t *testing.T) {
			dir := rig.Repository(t, "main.go", "README.md")
			if c.changed != "nothing" {
				rig.WriteBelow(t, dir, c.changed, "changed\n")
			}
			for _, from := range []string{".", "below"} {
				t.Chdir(filepath.Join(dir, from))
				got, err := Here(t.Context(), 12)
				testrig.Must(t, err)
				if !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(got.Commit) || got.Modified != c.want {
					t.Errorf("from %s: %+v, want 12 digits, and %v", from, got, c.want)
				}
			}
		})
	}
}

// TestNowhere: what is in no repository is of no commit.
func TestNowhere(t *testing.T) {
	dir := rig.Repository(t)
	testrig.Must(t, os.RemoveAll(filepath.Join(dir, ".git")))
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if got, err := Here(t.Context(), 7); err == nil {
		t.Errorf("%+v", got)
	}
}
