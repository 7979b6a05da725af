package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// shippedIn has the copy of this test that TestShipped starts look for the library that came with it.
const shippedIn = "IWARP_TEST_SHIPPED"

// TestShipped: a program takes the library beside it, which no checkout makes stale, and which is not built again. A
// library that the user names goes first.
func TestShipped(t *testing.T) {
	if err := checkSystem(); err != nil {
		t.Skip(err)
	}
	if dir := os.Getenv(shippedIn); dir != "" {
		wantShipped(t, Library{dir})
		return
	}
	top := t.TempDir()
	self, err := os.Executable()
	testrig.Must(t, err)
	data, err := os.ReadFile(self)
	testrig.Must(t, err)
	program, l := filepath.Join(top, "bin", "iwarp"), Library{filepath.Join(top, "lib", "iwarp")}
	testrig.Must(t, errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.MkdirAll(l.Dir, 0o755)))
	testrig.Must(t, os.WriteFile(program, data, 0o755))
	for _, file := range []string{l.Preload(), l.Engine(), filepath.Join(l.Dir, stampName)} {
		testrig.Must(t, os.WriteFile(file, []byte("old\n"), 0o644))
	}
	link := filepath.Join(t.TempDir(), "iwarp")
	testrig.Must(t, os.Symlink(program, link))
	for _, path := range []string{program, link} {
		cmd := exec.CommandContext(testrig.Within(t), path, "-test.run=^TestShipped$")
		cmd.Env = append(os.Environ(), shippedIn+"="+l.Dir, "IWARP_LIBRARY=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
		}
	}
}

func wantShipped(t *testing.T, want Library) {
	t.Helper()
	l, err := LibraryOf("v1.0.0")
	testrig.Must(t, err)
	if l != want {
		t.Fatalf("%v, want %v", l, want)
	}
	if s := l.State(t.Context(), "(devel)"); !s.Built || !s.Shipped || s.Stale() || s.Unknown() {
		t.Errorf("%+v", s)
	}
	if _, err := l.Plan(t.Context(), "v1.0.0"); err == nil || !strings.Contains(err.Error(), "came with this program") {
		t.Errorf("it can be built again: %v", err)
	}
	t.Setenv("IWARP_LIBRARY", t.TempDir())
	if l, err = LibraryOf("v1.0.0"); err != nil || l == want {
		t.Errorf("another one is named, and it is %v: %v", l, err)
	}
}
