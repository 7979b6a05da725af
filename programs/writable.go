package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A written is a place that a build writes to.
type written struct{ what, dir, variables string }

// places returns those of a build.
func (l Library) places(ctx context.Context) []written {
	var build, modules string
	if out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE").Output(); err == nil {
		build, modules, _ = strings.Cut(strings.TrimRight(string(out), "\r\n"), "\n")
	}
	return []written{
		l.place(),
		{"Go's build cache", strings.TrimSpace(build), "GOCACHE, XDG_CACHE_HOME or HOME"},
		{"Go's module cache", modules, "GOMODCACHE, GOPATH or HOME"},
	}
}

func (l Library) place() written {
	return written{"the library", l.Dir, "IWARP_LIBRARY, XDG_CACHE_HOME or HOME"}
}

// check returns an error that says which variables name another place, if this one cannot be written. It leaves nothing
// there.
func (w written) check() error {
	if !filepath.IsAbs(w.dir) {
		return fmt.Errorf("there is no place for %s: name one that can be written by %s", w.what, w.variables)
	}
	f, err := os.CreateTemp(existing(w.dir), ".iwarp-")
	if err != nil {
		return fmt.Errorf("%s cannot be written in %s: name a place that can be by %s", w.what, w.dir, w.variables)
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// existing returns the directory, or what there is of the way to it.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// explain adds to the error of a build what is wrong with its places. Go's may be read only if it finds there all that
// it needs, so that they are looked at when it has failed.
func (l Library) explain(ctx context.Context, err error) error {
	for _, w := range l.places(ctx) {
		if wrong := w.check(); wrong != nil {
			err = fmt.Errorf("%w\n%w", err, wrong)
		}
	}
	return err
}
