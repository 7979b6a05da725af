// Package rig makes repositories for the tests of the tools.
package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// Repository makes a repository of git with one commit, which has these files, and an empty directory called below. It
// is the working directory until the test ends.
func Repository(t *testing.T, files ...string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		testrig.Lacks(t, "a repository is made by git: "+err.Error())
	}
	alone(t)
	dir = t.TempDir()
	t.Chdir(dir)
	for _, file := range files {
		WriteBelow(t, dir, file, "as it was\n")
	}
	testrig.Must(t, os.Mkdir(filepath.Join(dir, "below"), 0o755))
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"},
		{"-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "--quiet", "--allow-empty", "-m", "all"}} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	return dir
}

// alone keeps git from the settings of whoever runs the tests, and from the repository that a hook which runs them is
// for.
func alone(t *testing.T) {
	t.Helper()
	for _, setting := range os.Environ() {
		if key, value, _ := strings.Cut(setting, "="); strings.HasPrefix(key, "GIT_") {
			t.Setenv(key, value) // it is back when the test ends
			testrig.Must(t, os.Unsetenv(key))
		}
	}
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
}

// WriteBelow writes a file below a directory, with the directories that it is in.
func WriteBelow(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(file))
	testrig.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testrig.Must(t, os.WriteFile(path, []byte(text), 0o600))
}
