package transfer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestWhatIsInTheWayOfADirectory has things of several kinds where a directory is made before it has its name: what a
// kill has left is used, and anything else stays as it is, with the directory made all the same.
func TestWhatIsInTheWayOfADirectory(t *testing.T) {
	const part = ".d.iwarp-part"
	for name, c := range map[string]struct {
		put  func(there string)
		left []string
	}{
		"an empty directory":      {func(there string) { madeDir(t, 0o700, there, part) }, nil},
		"one with the mark alone": {func(there string) { made(t, nil, there, part, unfinished) }, nil},
		"somebody's directory": {func(there string) { made(t, nil, there, part, "own") },
			[]string{part, part + "/own"}},
		"a file": {func(there string) { made(t, []byte("own"), there, part) }, []string{part}},
		"a link": {func(there string) { testrig.Must(t, os.Symlink("own", filepath.Join(there, part))) },
			[]string{part}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			made(t, nil, r.here, "d", "f")
			madeDir(t, 0o750, r.here, "d")
			c.put(r.there)
			testrig.Must(t, r.put("d", recursive))
			lists(t, r.there, append([]string{"d", "d/f"}, c.left...)...)
			if at := isDir(t, 0o750, r.there, "d"); !at.Equal(long) {
				t.Errorf("d has the time %v", at)
			}
		})
	}
}

// TestMarkBeside has a directory whose mark a kill has left beside it get its mode and time, and one that has a file of
// another kind there keep its own.
func TestMarkBeside(t *testing.T) {
	for text, ours := range map[string]bool{markText: true, "": false, markText[1:] + "x": false} {
		r := newRig(t)
		made(t, nil, r.here, "d", "f")
		madeDir(t, 0o750, r.here, "d")
		made(t, nil, r.there, "d", "f")
		madeDir(t, 0o711, r.there, "d")
		made(t, []byte(text), r.there, ".d.iwarp-part")
		testrig.Must(t, r.put("d", recursive, resume))
		if ours {
			isDir(t, 0o750, r.there, "d")
			lists(t, r.there, "d", "d/f")
		} else {
			isDir(t, 0o711, r.there, "d")
			lists(t, r.there, ".d.iwarp-part", "d", "d/f")
		}
	}
}
