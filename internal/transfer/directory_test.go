//go:build unix

package transfer

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// madeDir makes a directory with a mode, which was changed last long ago.
func madeDir(t *testing.T, mode fs.FileMode, elements ...string) string {
	t.Helper()
	name := filepath.Join(elements...)
	testrig.Must(t, os.MkdirAll(name, 0o700))
	testrig.Must(t, os.Chmod(name, mode))
	testrig.Must(t, os.Chtimes(name, long, long))
	return name
}

// isDir wants a directory with a mode, and reports when it was changed last.
func isDir(t *testing.T, mode fs.FileMode, elements ...string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(elements...))
	testrig.Must(t, err)
	if info.Mode() != mode|fs.ModeDir {
		t.Errorf("%s: %v", info.Name(), info.Mode())
	}
	return info.ModTime()
}

// TestDirectoriesThatWereThere keep their mode, whoever sends, and their time if nothing new is in them: only those
// that were made for the copy have the source's.
func TestDirectoriesThatWereThere(t *testing.T) {
	for name, adjust := range map[string][]func(*Client){"": nil, "resume": {resume}, "force": {force}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			soft(t, r.here, r.there)
			madeDir(t, 0o755, r.there, "d", "new")
			madeDir(t, 0o755, r.there, "d", "old")
			madeDir(t, 0o777, r.there, "d")
			madeDir(t, 0o700, r.here, "d", "old")
			madeDir(t, 0o700, r.here, "d")
			_, err := r.client(append(adjust, recursive)...).Get(testrig.Within(t), []string{""}, r.here)
			testrig.Must(t, err)
			isDir(t, 0o700, r.here, "d")
			if at := isDir(t, 0o700, r.here, "d", "old"); !at.Equal(long) {
				t.Errorf("old was changed at %v", at)
			}
			if at := isDir(t, 0o755, r.here, "d", "new"); !at.Equal(long) {
				t.Errorf("new has the time %v", at)
			}
			for _, mode := range []fs.FileMode{0o777, 0o500} {
				madeDir(t, 0o700, r.there, "p")
				testrig.Must(t, r.put(filepath.Base(madeDir(t, mode, r.here, "p")), append(adjust, recursive)...))
				if at := isDir(t, 0o700, r.there, "p"); !at.Equal(long) {
					t.Errorf("p was changed at %v", at)
				}
			}
		})
	}
}

// TestCutDirectory has what goes on with a copy give a directory that a cut has left the mode and the time that it was
// to have, and nobody copy it before that.
func TestCutDirectory(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	madeDir(t, 0o750, r.here, "d")
	plays(ctx, r.playClient(ctx), beginPut, message.Offer{Kind: message.Directory, Path: "d"})
	r.serving.Wait()
	lists(t, r.there, "d", "d/.iwarp-part")
	isDir(t, 0o700, r.there, "d")
	r.leaves(r.get("d", recursive), message.NotRegular)
	testrig.Must(t, r.put("d", recursive, resume))
	if at := isDir(t, 0o750, r.there, "d"); !at.Equal(long) {
		t.Errorf("d has the time %v", at)
	}
	lists(t, r.there, "d")
	testrig.Must(t, r.get("d", recursive))
}

// TestIntoItself has a directory on both ends, as in a first try on one machine: what a copy makes is not copied
// itself, and told.
func TestIntoItself(t *testing.T) {
	r := newRig(t)
	made(t, randomBytes(100, 31), r.there, "d", "f")
	made(t, randomBytes(200, 32), r.there, "z")
	_, err := r.client(recursive).Get(testrig.Within(t), []string{""}, filepath.Join(r.there, "everything"))
	r.leavesOne(err)
	lists(t, r.there, "d", "d/f", "z", "everything", "everything/d", "everything/d/f", "everything/z")

	_, err = r.client(recursive).Put(testrig.Within(t),
		[]string{filepath.Join(r.there, "d"), filepath.Join(r.there, "everything")}, "d")
	r.leavesOne(err)
	lists(t, filepath.Join(r.there, "d"), "d", "d/f", "f", "everything", "everything/d",
		"everything/d/f", "everything/z")

	// which was there: it is copied once
	_, err = r.client(recursive).Get(testrig.Within(t), []string{""}, filepath.Join(r.there, "everything"))
	if err == nil {
		t.Error("nothing was left out")
	}
	if all := names(t, filepath.Join(r.there, "everything", "everything"), "."); len(all) > 20 {
		t.Errorf("%d names", len(all))
	}
	testrig.Must(t, r.served())
}

// leavesOne has a copy leave one thing.
func (r *rig) leavesOne(err error) {
	r.t.Helper()
	var left *IncompleteError
	if !errors.As(err, &left) || left.Left != 1 {
		r.t.Errorf("%v: %v", err, r.told)
	}
}

// TestNotThroughLinks has a link of the user's own where a directory was asked for: nobody's file goes where it leads.
func TestNotThroughLinks(t *testing.T) {
	for name, script := range map[string][]message.Message{
		"a file":      {message.Offer{Kind: message.File, Path: "f/keys"}, message.Done{Digest: sha256.Sum256(nil)}},
		"a directory": {message.Offer{Kind: message.Directory, Path: "f/keys"}},
		"both": {message.Offer{Kind: message.Directory, Path: "f"},
			message.Offer{Kind: message.File, Path: "f/keys"}, message.Done{Digest: sha256.Sum256(nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			here := t.TempDir()
			testrig.Must(t, os.Mkdir(filepath.Join(here, "mine"), 0o700))
			testrig.Must(t, os.Symlink("mine", filepath.Join(here, "f")))
			script := append([]message.Message{message.Answer{}}, append(script, message.End{})...)
			if err := playServer(t, &Client{Recursive: true}, here, script...); err == nil {
				t.Error("it succeeds")
			}
			lists(t, here, "f", "mine")
		})
	}
}

// TestDirectoryGoes has the directory that files go to go away meanwhile: that their names are on disk is not said.
func TestDirectoryGoes(t *testing.T) {
	r := newRig(t)
	at := madeDir(t, 0o700, r.there, "d")
	name := made(t, randomBytes(3*message.MaxBlock, 33), r.here, "f")
	_, err := r.client(r.during(func() { testrig.Must(t, os.Rename(at, at+"2")) })).Put(testrig.Within(t),
		[]string{name}, "d")
	var last *Outcome
	if !errors.As(err, &last) || last.Path != "d" || last.Good() {
		t.Errorf("the client has %v", err)
	}
	if err := r.served(); !errors.As(err, &last) || last.Good() {
		t.Errorf("the server has %v", err)
	}
}

// TestLinkInPlace has a link come to where something is: that stays, unless it is a link to the same place, or may be
// replaced.
func TestLinkInPlace(t *testing.T) {
	for _, c := range []struct {
		is            string // a link's target; or a file, or a directory
		resume, force bool
		want          message.Code
	}{
		{"to", false, false, message.Exists},
		{"to", true, false, message.OK},
		{"to", false, true, message.OK},
		{"other", true, false, message.Exists},
		{"other", false, true, message.OK},
		{"a file", true, false, message.Exists},
		{"a file", false, true, message.OK},
		{"a directory", true, true, message.NotRegular},
	} {
		root, err := os.OpenRoot(t.TempDir())
		testrig.Must(t, err)
		switch c.is {
		case "a file":
			err = root.WriteFile("l", nil, 0o600)
		case "a directory":
			err = root.Mkdir("l", 0o700)
		default:
			err = root.Symlink(c.is, "l")
		}
		testrig.Must(t, err)
		if a := answerOf((&sink{root: root, resume: c.resume, force: c.force}).makeSymlink("l", "to")); a.Code != c.want {
			t.Errorf("%+v: %v", c, a)
		}
		if now, _ := root.Readlink("l"); (now == "to") != (c.want == message.OK || c.is == "to") {
			t.Errorf("%+v: it leads to %q", c, now)
		}
		testrig.Must(t, root.Close())
	}
}

// TestOtherPart: what a copy that was cut has left does not matter when there is something of another kind now,
// whatever the two are: neither with --force, nor, where a file comes, with --resume.
func TestOtherPart(t *testing.T) {
	left := map[string]func(root *os.Root) error{
		"nothing": func(*os.Root) error { return nil },
		"a part of a file": func(root *os.Root) error {
			return root.WriteFile(PartName("l"), randomBytes(9, 1),
				0o600)
		},
		"a part that cannot be read": func(root *os.Root) error {
			return root.WriteFile(PartName("l"), randomBytes(9, 1),
				0)
		},
		"a link":                       func(root *os.Root) error { return root.Symlink("nowhere", PartName("l")) },
		"a directory without its mark": func(root *os.Root) error { return root.Mkdir(PartName("l"), 0o700) },
		"a directory with its mark": func(root *os.Root) error {
			return errors.Join(root.Mkdir(PartName("l"), 0o700), (&sink{root: root}).mark(PartName("l")))
		},
	}
	for what, leave := range left {
		for _, s := range []sink{{force: true}, {resume: true}, {force: true, resume: true}} {
			root, err := os.OpenRoot(t.TempDir())
			testrig.Must(t, err)
			testrig.Must(t, leave(root))
			s.root = root
			p, err := s.openPart("l")
			if err != nil {
				t.Errorf("%s, force %v, resume %v: a file: %v", what, s.force, s.resume, err)
			} else {
				testrig.Must(t, errors.Join(p.Close(), root.Remove(PartName("l"))))
			}
			testrig.Must(t, errors.Join(root.RemoveAll(PartName("l")), leave(root), root.WriteFile("l", nil, 0o600)))
			if err := s.makeSymlink("l", "to"); s.force != (err == nil) {
				t.Errorf("%s, force %v, resume %v: a link: %v", what, s.force, s.resume, err)
			}
			if _, err := root.Lstat(PartName("l")); s.force && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, force %v, resume %v: there is a part still: %v", what, s.force, s.resume, err)
			}
			testrig.Must(t, root.Close())
		}
	}
}

// TestForeignPart: a directory under the name of a part in which something else is than a mark stays.
func TestForeignPart(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	testrig.Must(t, err)
	defer root.Close()
	testrig.Must(t, errors.Join(root.Mkdir(PartName("l"), 0o700), root.WriteFile(PartName("l")+"/theirs", nil, 0o600),
		root.WriteFile("l", nil, 0o600)))
	s := sink{root: root, force: true, resume: true}
	if _, err := s.openPart("l"); answerOf(err).Code != message.NotRegular {
		t.Errorf("a file: %v", err)
	}
	if err := s.makeSymlink("l", "to"); answerOf(err).Code != message.NotRegular {
		t.Errorf("a link: %v", err)
	}
	_, err = root.Lstat(PartName("l") + "/theirs")
	testrig.Must(t, err)
}

// TestEnteredAgain has a sender enter directories and leave none: it enters each but the one that it is in, and those
// are as many as a path has names.
func TestEnteredAgain(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	testrig.Must(t, err)
	defer root.Close()
	s := sink{root: root, dir: ".", dirs: true}
	for _, c := range []struct {
		path string
		code message.Code
	}{{"d", message.OK}, {"d", message.BadName}, {"e", message.BadName}, {"d/a", message.OK}, {"d/a", message.BadName},
		{"d/b", message.BadName}, {"d", message.BadName}} {
		if a := answerOf(s.make(message.Offer{Kind: message.Directory, Path: c.path, Mode: 0o700})); a.Code != c.code {
			t.Errorf("%s: %v", c.path, a)
		}
	}
	if len(s.entered) != 2 {
		t.Errorf("%d are entered", len(s.entered))
	}
	for _, p := range []string{"d/a", "d"} {
		testrig.Must(t, s.make(message.Offer{Kind: message.Leave, Path: p, Mode: 0o700}))
	}
	testrig.Must(t, s.make(message.Offer{Kind: message.Directory, Path: "e"}))
}

// TestMarkedOnce has the mark that was found beside a directory be in it, and no longer beside it.
func TestMarkedOnce(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	testrig.Must(t, err)
	defer root.Close()
	testrig.Must(t, os.Mkdir(filepath.Join(dir, "d"), 0o500))
	made(t, []byte(markText), dir, ".d.iwarp-part")
	if !(&sink{root: root}).isMarked("d") {
		t.Error("it is not marked")
	}
	lists(t, dir, "d", "d/.iwarp-part")
}
