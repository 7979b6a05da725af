package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stampName is the file of a Library that says which sources it was built from, by their digest.
const stampName = "sources"

// A State is what is known of a Library.
type State struct {
	Built bool
	// From is the digest of the sources that it was built from, and Now that of those that are there: "" is not known.
	From, Now string
}

// Stale reports whether the library is to be built anew.
func (s State) Stale() bool { return s.Built && s.Now != "" && s.From != s.Now }

// Unknown reports whether the library may be stale, as there are no sources to compare it with.
func (s State) Unknown() bool { return s.Built && s.Now == "" }

// State compares the library of a version of this module with the sources that one is in. Those of a version that was released stay
// the same, and the library has a place for each.
func (l Library) State(ctx context.Context, version string) (State, error) {
	s := State{Built: l.built(), From: l.stamp()}
	dir, err := findCheckout(ctx)
	if err != nil {
		if released(version) {
			s.Now = s.From
		}
		return s, nil
	}
	s.Now, err = digest(dir)
	return s, err
}

// released reports whether a version is not that of a checkout.
func released(version string) bool {
	return strings.HasPrefix(version, "v") && !strings.ContainsAny(version, "-+")
}

func (l Library) stamp() string {
	text, _ := os.ReadFile(filepath.Join(l.Dir, stampName))
	return strings.TrimSpace(string(text))
}

// digest is that of all sources of the module in a directory from which a library may be built: not of tests.
func digest(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && (base == "testdata" || strings.HasPrefix(base, ".")):
			return filepath.SkipDir
		case d.IsDir() || !isSource(base):
			return nil
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return add(h, filepath.ToSlash(relative), name)
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func isSource(base string) bool {
	return slices.Contains([]string{".go", ".c", ".h"}, filepath.Ext(base)) && !strings.HasSuffix(base, "_test.go") ||
		base == "go.mod" || base == "go.sum"
}

// add writes the digest of a file with its name, so that it tells where one ends.
func add(to io.Writer, name, path string) error {
	octets, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(octets)
	_, err = to.Write(append(append([]byte(name), 0), sum[:]...))
	return err
}
