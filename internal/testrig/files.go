package testrig

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Stored is where the captures of real connections lie, as seen from a package two levels
// below the module.
const Stored = "../../interop/testdata/captures/"

// Captures returns the paths of all captures of real connections in a directory.
func Captures(tb testing.TB, dir string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if err != nil || len(paths) < 20 {
		tb.Fatalf("%d captures in %s (%v)", len(paths), dir, err)
	}
	return paths
}

// Golden compares what a test has made with a file, or with update makes the file so.
func Golden(tb testing.TB, path string, got []byte, update bool) {
	tb.Helper()
	if update {
		Must(tb, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	Must(tb, err)
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(want, got) {
		tb.Errorf("%s: if what has changed is right, -update writes it (-want +got):\n%s", path,
			cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}

// Root returns the nearest directory above that has a go.mod: that of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory: run the tests within the repository")
		}
		dir = up
	}
}
