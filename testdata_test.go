package iwarp_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTestdataIsRead holds that each file of a testdata directory is one that a test reads: what is compared with nothing may say
// anything.
func TestTestdataIsRead(t *testing.T) {
	said, targets := saidByTests(t)
	files := 0
	walk(t, func(name string) {
		dir, rest, ok := strings.Cut(name, "/testdata/")
		if !ok {
			return
		}
		files++
		stem := strings.TrimSuffix(path.Base(rest), path.Ext(rest))
		switch kind, _, _ := strings.Cut(rest, "/"); {
		case kind == "fuzz":
			ok = slices.Contains(targets, dir+" "+path.Base(path.Dir(rest)))
		case kind == "script": // which package testscript reads as a whole
			ok = path.Ext(rest) == ".txtar"
		case kind == "small": // the module that internal/reach is tried on
			ok = dir == "internal/reach"
		case path.Dir(rest) == "captures" && path.Ext(rest) == ".pcap": // testrig.Captures
		case path.Ext(rest) == ".golden":
			_, err := os.Stat(strings.TrimSuffix(filepath.FromSlash(name), ".golden") + ".pcap")
			ok = err == nil
		default:
			ok = slices.ContainsFunc(said, func(s string) bool {
				return strings.HasSuffix("/"+s, "/"+stem) || strings.HasSuffix("/"+s, "/"+path.Base(rest)) || len(s) > 5 && strings.HasPrefix(stem, s)
			})
		}
		if !ok {
			t.Errorf("no test reads %s", name)
		}
	})
	if files < 50 {
		t.Errorf("%d files in testdata", files)
	}
}

// walk calls what is given for each file of the module, by its path with slashes.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case !d.IsDir():
			visit(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	literal = regexp.MustCompile("\"([^\"\\\\]+)\"|`([^`]+)`")
	target  = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
)

// saidByTests returns the texts between quotes in all tests, and the fuzz targets, after their directories.
func saidByTests(t *testing.T) (said, targets []string) {
	t.Helper()
	walk(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllStringSubmatch(string(b), -1) {
			said = append(said, m[1]+m[2])
		}
		for _, m := range target.FindAllStringSubmatch(string(b), -1) {
			targets = append(targets, path.Dir(name)+" "+m[1])
		}
	})
	return said, targets
}
