package transfer

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// newPart makes a part of f in a directory of its own.
func newPart(t *testing.T) (p *part, dir string) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	testrig.Must(t, err)
	t.Cleanup(func() { testrig.Should(t, root.Close()) })
	p, err = (&sink{root: root}).openPart("f")
	testrig.Must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p, dir
}

// TestNotOurs has another copy complete a part, or begin another one, just before that is locked: it is busy.
func TestNotOurs(t *testing.T) {
	p, dir := newPart(t)
	testrig.Must(t, p.own())
	testrig.Must(t, os.Rename(filepath.Join(dir, p.at), filepath.Join(dir, "f")))
	for _, now := range []string{"nothing", "another"} {
		if a := answerOf(p.own()); a.Code != message.Busy {
			t.Errorf("%s has its name: %v", now, a)
		}
		made(t, nil, dir, p.at)
	}
}

// TestOpenToTheEnd has a part be open, and so locked, until it has its name, where the system renames what is open.
func TestOpenToTheEnd(t *testing.T) {
	p, dir := newPart(t)
	testrig.Must(t, p.complete("f", message.Offer{Path: "f", Mode: 0o640}, false))
	if _, err := p.Stat(); (err == nil) != renamesOpen {
		t.Errorf("the part: %v", err)
	}
	lists(t, dir, "f")
}

// TestLongestName has the name of a part be as long as a system allows, and no longer.
func TestLongestName(t *testing.T) {
	longest := strings.Repeat("x", maxName-1-len(message.PartSuffix))
	if got := PartName("d/" + longest); got != "d/."+longest+message.PartSuffix {
		t.Error(got)
	}
	if got := PartName("d/" + longest + "x"); len(got) > len("d/")+maxName || strings.Contains(got, longest) {
		t.Error(got)
	}
}

// TestPartBesideAnother has a file of another length have the name: what a cut has left is gone on with.
func TestPartBesideAnother(t *testing.T) {
	r, data := newRig(t), randomBytes(4*message.MaxBlock, 61)
	made(t, data, r.here, "f")
	made(t, data[:3*message.MaxBlock], r.there, ".f.iwarp-part")
	made(t, nil, r.there, "f")
	left := r.cutAfter(never, never)
	testrig.Must(t, r.put("f", resume, force))
	has(t, data, r.there, "f")
	if took := never - left.Load(); took > message.MaxBlock+100<<10 {
		t.Errorf("%d bytes passed, and one block of %d was missing", took, message.MaxBlock)
	}
}

// TestBegun has who watches be told of each file when it begins.
func TestBegun(t *testing.T) {
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		made(t, randomBytes(1000, 62), r.from(way), "f")
		testrig.Must(t, ways[way](r))
		if b, ok := r.told[0].(Begun); !ok || filepath.Base(b.Path) != "f" || b.Size != 1000 {
			t.Errorf("%s: told %v", way, r.told)
		}
	}
}

// TestDirectoryStays has no file take the place of a directory.
func TestDirectoryStays(t *testing.T) {
	p, dir := newPart(t)
	testrig.Must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	if a := answerOf(mayReplace(p.root, "d")); a.Code != message.NotRegular {
		t.Errorf("got %v", a)
	}
}

// TestSeveralWantADirectory has nothing be got where there is none.
func TestSeveralWantADirectory(t *testing.T) {
	r := newRig(t)
	made(t, nil, r.there, "a")
	made(t, nil, r.there, "b")
	for _, to := range []string{filepath.Join(r.here, "none"), made(t, nil, r.here, "file")} {
		if _, err := r.client(force).Get(testrig.Within(t), []string{"a", "b"}, to); err == nil {
			t.Errorf("two files come to %s", to)
		}
	}
	lists(t, r.here, "file")
}

// TestLongTexts has a path or a reason that is too long be cut, and told, and none that is not.
func TestLongTexts(t *testing.T) {
	var got message.Offer
	v := visitor{other: func(o message.Offer) (bool, error) { got = o; return true, nil }}
	for _, c := range []struct{ path, text int }{{message.MaxPath, message.MaxText},
		{message.MaxPath + 1, message.MaxText + 1}, {2 * message.MaxPath, 3 * message.MaxText}} {
		as, why := strings.Repeat("x", c.path-1)+"y", strings.Repeat("w", c.text)
		testrig.Must(t, v.reportMissed(as, why))
		if path := toUTF8(got.Path); len(path) != message.MaxPath || !strings.HasSuffix(path, "xy") ||
			strings.HasPrefix(path, "... ") != (c.path > message.MaxPath) {
			t.Errorf("a path of %d has become %d: %.5s", c.path, len(path), path)
		}
		if len(got.Detail) != message.MaxText || strings.HasSuffix(got.Detail, " ...") != (c.text > message.MaxText) {
			t.Errorf("a reason of %d has become %d", c.text, len(got.Detail))
		}
	}
}

// TestChangedInLength has a file of another length be another one, whatever time it has.
func TestChangedInLength(t *testing.T) {
	name := made(t, randomBytes(1000, 63), t.TempDir(), "f")
	f, err := os.Open(name)
	testrig.Must(t, err)
	defer f.Close()
	before, err := f.Stat()
	testrig.Must(t, err)
	for _, n := range []int{1000, 999} {
		made(t, randomBytes(n, 63), name)
		if (&sending{f: f}).changed(before) != (n != 1000) {
			t.Errorf("%d bytes, and it was changed: %t", n, n == 1000)
		}
	}
}

// TestKinds names what is not copied.
func TestKinds(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o644: "a file", fs.ModeDir | 0o755: "a directory", fs.ModeSymlink | 0o777: "a symbolic link",
		fs.ModeNamedPipe | 0o600: "a pipe",
		fs.ModeSocket | 0o600:    "a socket", fs.ModeDevice | 0o600: "a device",
		fs.ModeDevice | fs.ModeCharDevice | 0o600: "a device",
	} {
		if got := kindOf(mode); got != want {
			t.Errorf("%v is %s", mode, got)
		}
	}
}

// TestComesMeanwhile has a file get the name while it is copied: with --resume that is compared, and no part is left if
// it is the same. The next one that finds the file there takes away what is left.
func TestComesMeanwhile(t *testing.T) {
	for _, n := range []int{1000, 2*message.MaxBlock + 5} {
		for _, c := range []struct {
			there []byte
			code  message.Code
		}{{randomBytes(n, 64), message.Already}, {randomBytes(n+1, 64), message.Unlike},
			{append(randomBytes(n, 64), 'x')[1:], message.Unlike}} {
			r := newRig(t)
			made(t, randomBytes(n, 64), r.here, "f")
			err := r.put("f", resume, r.during(func() { made(t, c.there, r.there, "f") }))
			if got := r.outcome(); got != c.code || (err == nil) != (c.code == message.Already) {
				t.Errorf("%d bytes, and %d come meanwhile: %v, %v", n, len(c.there), got, err)
			}
			if c.code == message.Already {
				lists(t, r.there, "f")
			}
		}
	}
	r := newRig(t)
	made(t, randomBytes(1000, 65), r.here, "f")
	made(t, randomBytes(1000, 65), r.there, "f")
	made(t, randomBytes(1000, 65), r.there, ".f.iwarp-part")
	testrig.Must(t, r.put("f", resume))
	lists(t, r.there, "f")
}
