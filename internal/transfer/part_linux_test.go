package transfer

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestReadOnlyPart has a file that its owner must not write to, or not even read, not get its name, which something
// else has by now: its part is gone on with, or replaced, and then it has its mode.
func TestReadOnlyPart(t *testing.T) {
	for _, mode := range []fs.FileMode{0o444, 0o555, 0, 0o200} {
		for _, way := range []sink{{resume: true}, {force: true}} {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			testrig.Must(t, err)
			way.root = root
			o := message.Offer{Kind: message.File, Mode: uint32(mode), Path: "f", Size: 5}
			asNobody(t, dir, func() {
				p, err := way.openPart("f")
				testrig.Must(t, err)
				_, err = p.WriteString("hello")
				testrig.Must(t, err)
				made(t, nil, dir, "f")
				if p.complete("f", o, false) == nil {
					t.Error("it has replaced what was there")
				}
				p.drop()
				testrig.Must(t, os.Remove(filepath.Join(dir, "f")))

				p, err = way.openPart("f")
				testrig.Must(t, err)
				if want := map[bool]int64{true: 5}[way.resume]; p.had != want {
					t.Errorf("%d bytes are there", p.had)
				}
				testrig.Must(t, p.complete("f", o, false))
				p.drop()
			})
			lists(t, dir, "f")
			info, err := os.Stat(filepath.Join(dir, "f"))
			testrig.Must(t, err)
			if info.Mode() != mode || info.Size() != 5 {
				t.Errorf("%v, %d bytes, and not %v", info.Mode(), info.Size(), mode)
			}
			testrig.Should(t, root.Close())
		}
	}
}

// TestReadOnlyDirectory has a directory that its owner must not write to be complete, and one in which nothing can be
// made from the beginning not be left.
func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	testrig.Must(t, err)
	defer root.Close()
	s := sink{root: root, dir: ".", dirs: true}
	asNobody(t, dir, func() {
		testrig.Must(t, s.enter("d"))
		testrig.Must(t, s.leave(message.Offer{Kind: message.Leave, Path: "d", Mode: 0o500}))
		defer unix.Umask(unix.Umask(0o700))
		if err := s.enter("e"); err == nil {
			t.Error("something was made in it")
		}
	})
	lists(t, dir, "d")
	if info, err := os.Stat(filepath.Join(dir, "d")); err != nil || info.Mode() != fs.ModeDir|0o500 {
		t.Errorf("%v, %v", info, err)
	}
}

// asNobody calls f as a user without rights of its own, who has a directory.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	testrig.Must(t, os.Chown(dir, nobody, nobody))
	testrig.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	_, err := unix.SetfsuidRetUid(nobody)
	testrig.Must(t, err)
	f()
}

// TestReadOnlyFile has the mode of a file that its owner must not write to kept.
func TestReadOnlyFile(t *testing.T) {
	for _, mode := range []fs.FileMode{0o444, 0o555} {
		r := newRig(t)
		testrig.Must(t, os.Chmod(made(t, randomBytes(100, 51), r.here, "f"), mode))
		testrig.Must(t, r.put("f"))
		info, err := os.Stat(filepath.Join(r.there, "f"))
		testrig.Must(t, err)
		if info.Mode() != mode || !info.ModTime().Equal(long) {
			t.Errorf("%v, %v", info.Mode(), info.ModTime())
		}
	}
}
