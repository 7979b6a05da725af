package housecheck

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

// TestTestdataIsRead holds that each file of a testdata directory is one that a test reads: what is compared with
// nothing may say anything.
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
		case isModule(dir + "/testdata/" + kind): // which a test reads as a whole
			ok = said.ends[kind]
		case path.Dir(rest) == "captures" && path.Ext(rest) == ".pcap": // testrig.Captures
		case path.Ext(rest) == ".golden":
			_, err := os.Stat(strings.TrimSuffix(filepath.FromSlash(name), ".golden") + ".pcap")
			ok = err == nil
		case path.Ext(rest) == ".h" && included(t, name):
			ok = true
		default:
			ok = said.ends[stem] || said.ends[path.Base(rest)] || said.begins(stem)
		}
		if !ok {
			t.Errorf("no test reads %s", name)
		}
	})
	if files < 50 {
		t.Errorf("%d files in testdata", files)
	}
}

// isModule reports whether a directory is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(filepath.FromSlash(dir), "go.mod"))
	return err == nil
}

// included reports whether a C program in the same directory includes a file. The test above is about the programs.
func included(t *testing.T, name string) bool {
	t.Helper()
	programs, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.FromSlash(name)), "*.c"))
	must(t, err)
	return slices.ContainsFunc(programs, func(program string) bool {
		b, err := os.ReadFile(program)
		must(t, err)
		return strings.Contains(string(b), `#include "`+path.Base(name)+`"`)
	})
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
	literal = regexp.MustCompile("\"([^\"\\\\\n]*)\"|`([^`]+)`")
	target  = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
)

// quoted is the texts between quotes in all tests: each as a whole, and what follows its last slash.
type quoted struct{ whole, ends map[string]bool }

// begins reports whether a name begins with a text of more than five bytes.
func (q quoted) begins(name string) bool {
	for n := 6; n <= len(name); n++ {
		if q.whole[name[:n]] {
			return true
		}
	}
	return false
}

// saidByTests returns the texts between quotes in all tests, and the fuzz targets, after their directories.
func saidByTests(t *testing.T) (all quoted, targets []string) {
	t.Helper()
	all = quoted{map[string]bool{}, map[string]bool{}}
	walk(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllStringSubmatch(string(b), -1) {
			text := m[1] + m[2]
			all.whole[text] = true
			all.ends[text[strings.LastIndexByte(text, '/')+1:]] = true
		}
		for _, m := range target.FindAllStringSubmatch(string(b), -1) {
			targets = append(targets, path.Dir(name)+" "+m[1])
		}
	})
	return all, targets
}
