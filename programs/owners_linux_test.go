package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// placed is a library in a directory of its own below a directory that root alone writes to, which takes root.
func placed(t *testing.T) Library {
	t.Helper()
	if os.Geteuid() != 0 {
		testrig.Lacks(t, "only root has files of other users")
	}
	//nolint:usetesting // A directory of the test's is below /tmp, to which all write.
	top, err := os.MkdirTemp("/usr/lib", "iwarp-test-")
	testrig.Must(t, err)
	t.Cleanup(func() { testrig.Should(t, os.RemoveAll(top)) })
	l := Library{filepath.Join(top, "library")}
	testrig.Must(t, os.Mkdir(l.Dir, 0o755))
	testrig.Must(t, os.Chmod(top, 0o755))
	for _, file := range []string{l.Preload(), l.Engine()} {
		testrig.Must(t, os.WriteFile(file, nil, 0o755))
		testrig.Must(t, os.Chmod(file, 0o755))
	}
	return l
}

// TestTrust has libraries of root, of the caller and of others, in directories of all of these, that others can write
// to or not.
func TestTrust(t *testing.T) {
	const someone, other, root = 1234, 4321, 0
	for _, c := range []struct {
		name         string
		change       func(l Library) error
		someone, all bool // who takes it: a user, and root too
	}{
		{"root's, below /usr/lib", func(Library) error { return nil }, true, true},
		{"the user's", func(l Library) error { return os.Chown(l.Engine(), someone, someone) }, true, false},
		{"another's", func(l Library) error { return os.Chown(l.Preload(), other, other) }, false, false},
		{"in the user's directory", func(l Library) error { return os.Chown(l.Dir, someone, someone) }, true, false},
		{"in another's directory", func(l Library) error { return os.Chown(filepath.Dir(l.Dir), other, other) }, false,
			false},
		{"written by all", func(l Library) error { return os.Chmod(l.Engine(), 0o757) }, false, false},
		{"written by the group", func(l Library) error { return os.Chmod(l.Engine(), 0o775) }, false, false},
		{"in a directory of all", func(l Library) error { return os.Chmod(l.Dir, 0o777) }, false, false},
		{"below a sticky directory", func(l Library) error {
			return os.Chmod(filepath.Dir(l.Dir),
				0o777|os.ModeSticky)
		}, false, false},
		{"by a link to a safe place", func(l Library) error { return linked(l, filepath.Dir(l.Dir)) }, true, true},
		{"by a link to a place of all", func(l Library) error { return linked(l, os.TempDir()) }, false, false},
		{"not there", func(l Library) error { return os.RemoveAll(l.Dir) }, true, true},
	} {
		l := placed(t)
		testrig.Must(t, c.change(l))
		for uid, taken := range map[uint32]bool{someone: c.someone, root: c.all} {
			notice, err := loader{uid: uid, overflow: 65534}.trust(l, false)
			if (err == nil) != taken || notice != "" || err != nil && !errors.As(err, new(*Distrust)) {
				t.Errorf("%s, for %d: %q, %v", c.name, uid, notice, err)
			}
			notice, err = loader{uid: uid, overflow: 65534}.trust(l, true)
			if err != nil || (notice == "") != taken || !taken && !strings.Contains(notice, "IWARP_LIBRARY names it") {
				t.Errorf("%s, named, for %d: %q, %v", c.name, uid, notice, err)
			}
		}
	}
}

// linked has the engine be a link to one in another directory.
func linked(l Library, dir string) error {
	to, err := os.CreateTemp(dir, "engine-")
	if err != nil {
		return err
	}
	return errors.Join(to.Close(), os.Remove(l.Engine()), os.Symlink(to.Name(), l.Engine()))
}

// TestOwnerSaid has the owner be named, also where a user namespace shows root as the user whom nobody is.
func TestOwnerSaid(t *testing.T) {
	l := placed(t)
	testrig.Must(t, os.Chown(l.Engine(), 4321, 4321))
	notice, err := loader{uid: 1, overflow: 65534}.trust(l, true)
	if err != nil || !strings.Contains(notice, l.Engine()+" belongs to uid 4321") {
		t.Errorf("%q, %v", notice, err)
	}
	notice, err = loader{uid: 1, overflow: 4321, hides: true}.trust(l, true)
	if err != nil || !strings.Contains(notice, "belongs to uid 4321, as which this user namespace shows root") {
		t.Errorf("in a namespace: %q, %v", notice, err)
	}
	if _, err = (loader{uid: 1, overflow: 4321, hides: true}).trust(l, false); err == nil {
		t.Error("what is not named is taken from anybody in a namespace")
	}
}

// TestOwnerSaidToo has the owner be named where others can write to a directory on the way as well.
func TestOwnerSaidToo(t *testing.T) {
	l := placed(t)
	testrig.Must(t, os.Chmod(filepath.Dir(l.Dir), 0o777|os.ModeSticky))
	notice, err := loader{overflow: 65534}.trust(l, true)
	if err != nil || !strings.Contains(notice, "can write "+filepath.Dir(l.Dir)) ||
		strings.Contains(notice, "belongs") {
		t.Errorf("root's own: %q, %v", notice, err)
	}
	testrig.Must(t, os.Chown(l.Engine(), 4321, 4321))
	notice, err = loader{overflow: 65534}.trust(l, true)
	if err != nil || !strings.HasSuffix(notice, ", and "+l.Engine()+" belongs to uid 4321") {
		t.Errorf("another's: %q, %v", notice, err)
	}
}

// TestNamespace looks at root's library from a user namespace without root.
func TestNamespace(t *testing.T) {
	const inside = "IWARP_TEST_NAMESPACE"
	if dir := os.Getenv(inside); dir != "" {
		notice, err := Library{dir}.Trust()
		if err != nil || !strings.Contains(notice, "belongs to uid 65534, as which this user namespace shows root") {
			t.Errorf("%q, %v", notice, err)
		}
		return
	}
	l := placed(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+l.Dir, "IWARP_LIBRARY="+l.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 1000, Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		testrig.Lacks(t, "no user namespace can be made")
	}
	if err != nil || !strings.Contains(string(out), "PASS: TestNamespace") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestModes has what is built be written by its owner alone and read by all, whatever it was built as.
func TestModes(t *testing.T) {
	l := Library{t.TempDir()}
	for i, file := range []string{l.Engine(), l.Preload(), l.suppressions(), filepath.Join(l.Dir, stampName)} {
		testrig.Must(t, os.WriteFile(file, nil, 0o600))
		testrig.Must(t, os.Chmod(file, []os.FileMode{0o777, 0o700, 0o666, 0o600}[i]))
	}
	testrig.Must(t, l.setModes())
	for file, want := range map[string]os.FileMode{l.Engine(): 0o755, l.Preload(): 0o755, l.suppressions(): 0o644,
		filepath.Join(l.Dir, stampName): 0o644} {
		if info, err := os.Stat(file); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// TestSystems has each system but Linux on two processors be told what is needed.
func TestSystems(t *testing.T) {
	for _, s := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"linux", "386"},
		{"windows", "amd64"}, {"darwin", "arm64"}} {
		err := systemError(s[0], s[1])
		if good := s[0] == "linux" && s[1] != "386"; (err == nil) != good || !good &&
			(!errors.Is(err, ErrSystem) || !strings.Contains(err.Error(), "needs Linux")) {
			t.Errorf("%v: %v", s, err)
		}
	}
}
