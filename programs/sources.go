package programs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	// Shipped is that it came with the program. It is not compared with sources, nor built again.
	Shipped bool
	// Failed is why the sources that are there could not be looked at, if there are any.
	Failed error
}

// Stale reports whether the library is to be built anew.
func (s State) Stale() bool { return s.Built && s.Now != "" && s.From != s.Now }

// Unknown reports whether the library may be stale, as there are no sources to compare it with, or they cannot be
// looked at.
func (s State) Unknown() bool { return s.Built && s.Now == "" }

// State compares the library of a version of this module with the sources that one is in, which takes Go. Those of a
// version that was released stay the same, and the library has a place for each.
func (l Library) State(ctx context.Context, version string) State {
	s := State{Built: l.built(), From: l.stamp()}
	if l.isShipped() {
		s.Now, s.Shipped = s.From, true
		return s
	}
	dir, err := findCheckout(ctx)
	if err != nil {
		if released(version) {
			s.Now = s.From
		}
		return s
	}
	now, err := digest(ctx, dir)
	switch {
	case err == nil:
		s.Now = now
	case !errors.Is(err, exec.ErrNotFound): // without Go the sources are there in vain
		s.Failed = err
	}
	return s
}

// released reports whether a version is not that of a checkout.
func released(version string) bool {
	return strings.HasPrefix(version, "v") && !strings.ContainsAny(version, "-+")
}

func (l Library) stamp() string {
	text, _ := os.ReadFile(filepath.Join(l.Dir, stampName))
	return strings.TrimSpace(string(text))
}

// digest is that of what a library is built from, of the module in a directory: the packages of the engine, and the
// part in C. What else lies there is nobody's business.
func digest(ctx context.Context, dir string) (string, error) {
	files, err := sourceFiles(ctx, dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, name := range files {
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return "", err
		}
		if err := add(h, filepath.ToSlash(relative), name); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A listed is a package as go list describes it.
type listed struct {
	Dir    string
	Module struct{ Main bool }

	GoFiles, CgoFiles, InvalidGoFiles, CFiles, HFiles, SFiles, EmbedFiles []string
}

func (p *listed) files() (paths []string) {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.InvalidGoFiles, p.CFiles, p.HFiles,
		p.SFiles, p.EmbedFiles) {
		paths = append(paths, filepath.Join(p.Dir, name))
	}
	return paths
}

// sourceFiles lists them. What is wrong with a source is for the build to say (-e).
func sourceFiles(ctx context.Context, dir string) (all []string, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-C", dir, "-e", "-deps", "-tags", "interposer",
		"-json=Dir,Module,GoFiles,CgoFiles,InvalidGoFiles,CFiles,HFiles,SFiles,EmbedFiles", "./programs/engine")
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", said(err))
	}
	for packages := json.NewDecoder(bytes.NewReader(out)); packages.More(); {
		var p listed
		if err := packages.Decode(&p); err != nil {
			return nil, err
		}
		if p.Module.Main {
			all = append(all, p.files()...)
		}
	}
	for _, pattern := range []string{"programs/preload/*.[ch]", "go.mod", "go.sum"} {
		more, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// add writes the digest of a file with its name, so that it tells where one ends.
func add(to io.Writer, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	_, err = to.Write(append(append([]byte(name), 0), sum[:]...))
	return err
}
