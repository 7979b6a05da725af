//go:build unix

package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// wood makes a directory with all that may be in one, and returns its name.
func wood(t *testing.T, dir string) string {
	t.Helper()
	root := filepath.Join(dir, "wood")
	made(t, randomBytes(100, 21), root, "a", "b", "deep")
	made(t, randomBytes(70000, 22), root, "a", "file")
	made(t, nil, root, "empty")
	made(t, []byte("x"), root, "name with ü and \\")
	testrig.Must(t, os.Mkdir(filepath.Join(root, "nothing"), 0o700))
	testrig.Must(t, os.Symlink("b/deep", filepath.Join(root, "a", "inside")))
	testrig.Must(t, os.Symlink("../a/file", filepath.Join(root, "a", "up")))
	for i := range batch + 3 { // more than is read at a time
		made(t, nil, root, "many", fmt.Sprint(i))
	}
	testrig.Must(t, os.Chmod(filepath.Join(root, "a"), 0o555)) // it can be made all the same
	testrig.Must(t, os.Chtimes(filepath.Join(root, "a"), long, long))
	return root
}

// grown wants a wood.
func grown(t *testing.T, dir string, links bool) {
	t.Helper()
	has(t, randomBytes(100, 21), dir, "a", "b", "deep")
	has(t, randomBytes(70000, 22), dir, "a", "file")
	has(t, nil, dir, "empty")
	has(t, []byte("x"), dir, "name with ü and \\")
	if many, err := os.ReadDir(filepath.Join(dir, "many")); err != nil || len(many) != batch+3 {
		t.Errorf("%d files in many, %v", len(many), err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	testrig.Must(t, err)
	if info.Mode().Perm() != 0o555 || !info.ModTime().Equal(long) {
		t.Errorf("a: %v, %v", info.Mode(), info.ModTime())
	}
	if to, err := os.Readlink(filepath.Join(dir, "a", "inside")); links != (err == nil) || links && to != "b/deep" {
		t.Errorf("a link to %q, %v", to, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nothing")); err != nil {
		t.Error(err)
	}
}

// soft lets a test's directories be removed.
func soft(t *testing.T, dirs ...string) {
	t.Cleanup(func() {
		for _, d := range dirs {
			_ = filepath.WalkDir(d, func(p string, e os.DirEntry, _ error) error {
				if e != nil && e.IsDir() {
					_ = os.Chmod(p, 0o700)
				}
				return nil
			})
		}
	})
}

// TestTrees has directories go both ways. A server makes no links.
func TestTrees(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), testrig.Within(t)
	soft(t, r.here, r.there)
	all := func(c *Client) { c.Recursive = true }
	sum, err := r.client(all).Put(ctx, []string{wood(t, r.here)}, "")
	if err == nil || sum.Left != 2 || sum.Files != batch+3+4 {
		t.Errorf("%+v, %v", sum, err)
	}
	grown(t, filepath.Join(r.there, "wood"), false)

	soft(t, wood(t, filepath.Join(r.there, "d")))
	_, err = r.client(all).Get(ctx, []string{"d/wood"}, filepath.Join(r.here, "new"))
	testrig.Must(t, err)
	grown(t, filepath.Join(r.here, "new", "wood"), true)
	sum, err = r.client(all, resume).Get(ctx, []string{"d/wood"}, filepath.Join(r.here, "new"))
	testrig.Must(t, err)
	if r.outcome() != message.Already || sum.Files != batch+3+4 || sum.There != sum.Files {
		t.Errorf("%+v: %v", sum, r.outcome())
	}
	sum, err = r.client(all, force).Get(ctx, []string{""}, filepath.Join(r.here, "whole"))
	testrig.Must(t, err)
	grown(t, filepath.Join(r.here, "whole", "d", "wood"), true)
	if sum.Files != 2*(batch+3+4) {
		t.Errorf("%+v", sum)
	}
	// once more, where it is by now
	_, err = r.client(all, resume).Get(ctx, []string{""}, filepath.Join(r.here, "whole"))
	testrig.Must(t, err)
	lists(t, r.here, append(names(t, r.here, "wood", "new/wood", "whole/d", "whole/wood"), "wood", "new", "new/wood",
		"whole", "whole/d", "whole/wood")...)
}

// names are those below directories.
func names(t *testing.T, dir string, below ...string) (all []string) {
	t.Helper()
	for _, b := range below {
		testrig.Must(t, filepath.WalkDir(filepath.Join(dir, b), func(p string, _ os.DirEntry, err error) error {
			if rel, _ := filepath.Rel(dir, p); rel != b {
				all = append(all, rel)
			}
			return err
		}))
	}
	return all
}

// TestLeftOut has what is neither a file nor a directory left out, and told, and names that no receiver takes.
func TestLeftOut(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	dir := filepath.Join(r.here, "d")
	made(t, nil, dir, "fine")
	testrig.Must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	testrig.Must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "out")))
	testrig.Must(t, os.Symlink("..", filepath.Join(dir, "above")))
	made(t, nil, dir, "new\nline")
	made(t, nil, dir, "\xff")
	made(t, nil, dir, ".f"+message.PartSuffix)
	sum, err := r.client(func(c *Client) { c.Recursive = true }).Put(ctx, []string{dir}, "")
	if err == nil || sum.Files != 1 || sum.Left != 6 {
		t.Errorf("%+v, %v", sum, err)
	}
	lists(t, r.there, "d", "d/fine")
	var told strings.Builder
	for _, e := range r.told {
		if o, ok := e.(*Outcome); ok && !o.Good() {
			fmt.Fprintln(&told, o)
		}
	}
	for _, want := range []string{
		`"d/pipe": not copied: not a regular file, but a pipe`,
		`"d/out": not copied: a symbolic link that begins at the root, which`,
		`"d/above": not copied: a symbolic link that leads out of the directory that is copied`,
		`"d/new\nline": not copied: a name with control characters: rename it`,
		`"d/\xff": not copied: a name that is not UTF-8: rename it`,
		`not copied: ".f.iwarp-part" is the name of what a cut copy has left`,
	} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%s is not told in\n%s", want, &told)
		}
	}
	if err := r.put("d/pipe"); err == nil || r.outcome() != message.NotRegular {
		t.Errorf("a pipe: %v", err)
	}
	for _, name := range []string{"d/new\nline", "d/\xff"} {
		if err := r.put(name); err == nil {
			t.Errorf("%q was copied", name)
		}
	}
	testrig.Must(t, r.served())
}

// TestLeftOutByOneName has a name that is not to be made be told once, and escaped once, at either end.
func TestLeftOutByOneName(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	for _, dir := range []string{r.there, r.here} {
		made(t, nil, dir, "d", "new\nline")
		made(t, nil, dir, "d", "q\"\xff")
		made(t, nil, dir, "e")
	}
	_, err := r.client(recursive).Get(ctx, []string{"d"}, t.TempDir())
	r.leaves(err, message.NotRegular)
	told := r.told
	r.says(`"d/new\nline": not copied: a name with control characters: rename it`)
	r.told = told
	r.says(`"d/q\"` + "\ufffd" + `": not copied: a name that is not UTF-8: rename it`)
	_, err = r.client(force).Put(ctx, []string{filepath.Join(r.here, "d/q\"\xff"), filepath.Join(r.here, "e")}, "")
	if sum := (&IncompleteError{}); !errors.As(err, &sum) || sum.Files != 1 {
		t.Errorf("got %v", err)
	}
	r.says(strconv.Quote(filepath.Join(r.here, "d/q\"\xff")) + ": not copied: a name that is not UTF-8: rename it")
	testrig.Must(t, r.served())
}

// TestSaidWhole cuts no name amid a letter: a message is UTF-8.
func TestSaidWhole(t *testing.T) {
	for n := range 4 {
		long := strings.Repeat("x", n) + strings.Repeat("\xffé", message.MaxPath)
		if got := toUTF8(long); !utf8.ValidString(got) || len(got) > message.MaxPath || len(got) < message.MaxPath-4 {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if got := truncate(strings.Repeat("x", n)+strings.Repeat("é", message.MaxText),
			message.MaxText); !utf8.ValidString(got) || len(got) > message.MaxText {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}

// TestLinksCopied has links of every form that lead to something in their tree come as they are, wherever what they go
// through is among the names of their directory; of others it is told why not.
func TestLinksCopied(t *testing.T) {
	r := newRig(t)
	made(t, []byte("fine"), r.there, "d", "file")
	made(t, nil, r.there, "d", "sub", "deep", "f")
	links := map[string]string{
		"a": "./file", "b": "sub/", "c": ".", "e": "sub/../file", "sub/up": "..", "sub/deep/top": "../..",
		"sub/deep/g": "./../.././file", "z": "sub/deep/../../file", "n": "not/there",
	}
	others := map[string]string{
		"out": "..", "root": "/etc/passwd", "back": "../d/file", "through": "c/../file", "nowhere": "not/../file",
	}
	for _, all := range []map[string]string{links, others} {
		for name, to := range all {
			testrig.Must(t, os.Symlink(to, filepath.Join(r.there, "d", name)))
		}
	}
	sum, err := r.client(recursive).Get(testrig.Within(t), []string{"d"}, r.here)
	if err == nil || sum.Left != len(others) {
		t.Errorf("%+v, %v", sum, err)
	}
	for name, to := range links {
		if got, err := os.Readlink(filepath.Join(r.here, "d", name)); got != to {
			t.Errorf("%s leads to %q, not %q (%v)", name, got, to, err)
		}
	}
	has(t, []byte("fine"), r.here, "d", "sub", "deep", "top", "z")
	var told strings.Builder
	for _, e := range r.told {
		if o, ok := e.(*Outcome); ok && !o.Good() {
			fmt.Fprintln(&told, o)
		}
	}
	for name, why := range map[string]string{
		"out": "leads out of", "root": "begins at the root", "back": "leads out of",
		"through": `goes up again from "c", and no such`, "nowhere": `goes up again from "not", and no such`,
	} {
		if _, err := os.Lstat(filepath.Join(r.here, "d", name)); err == nil ||
			!strings.Contains(told.String(), name+`": `) || !strings.Contains(told.String(), why) {
			t.Errorf("%s, which %s (%v), in\n%s", name, why, err, &told)
		}
	}
	testrig.Must(t, r.served())
}

// TestLinksAtTheServer has links in the directory that is served lead nowhere else, and a link that is named be
// followed.
func TestLinksAtTheServer(t *testing.T) {
	r, secret := newRig(t), t.TempDir()
	made(t, []byte("secret"), secret, "f")
	made(t, []byte("fine"), r.there, "d", "f")
	testrig.Must(t, os.Symlink(secret, filepath.Join(r.there, "out")))
	testrig.Must(t, os.Symlink(filepath.Join(secret, "f"), filepath.Join(r.there, "file")))
	testrig.Must(t, os.Symlink("d", filepath.Join(r.there, "in")))
	for _, name := range []string{"out", "out/f", "file"} {
		if err := r.get(name, func(c *Client) { c.Recursive = true }); err == nil {
			t.Errorf("%s came", name)
		}
	}
	made(t, []byte("mine"), r.here, "g")
	for _, to := range []string{"out", "out/g", "file"} {
		if _, err := r.client(force).Put(testrig.Within(t), []string{filepath.Join(r.here, "g")}, to); err == nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	has(t, []byte("secret"), secret, "f")
	lists(t, secret, "f")
	testrig.Must(t, r.get("in/f"))
	has(t, []byte("fine"), r.here, "f")
	testrig.Must(t, os.Symlink("g", filepath.Join(r.here, "l")))
	testrig.Must(t, r.put("l"))
	has(t, []byte("mine"), r.there, "l")
}

// TestPartInTheWay has something in the place of a part that no copy leaves there, or about which nobody is asked: it
// stays. A link, which one may have left, goes when that is asked for, and not what it leads to.
func TestPartInTheWay(t *testing.T) {
	secret := made(t, []byte("secret"), t.TempDir(), "s")
	for name, make := range map[string]func(at string) error{
		"directory": func(at string) error { return os.MkdirAll(filepath.Join(at, "theirs"), 0o700) },
		"pipe":      func(at string) error { return unix.Mkfifo(at, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			made(t, randomBytes(5000, 23), r.here, "f")
			testrig.Must(t, make(filepath.Join(r.there, ".f.iwarp-part")))
			for _, adjust := range []func(*Client){func(*Client) {}, resume, force} {
				r.leaves(r.put("f", adjust), message.NotRegular)
			}
			_, err := os.Lstat(filepath.Join(r.there, ".f.iwarp-part"))
			testrig.Must(t, err)
			_, err = os.Lstat(filepath.Join(r.there, "f"))
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is f: %v", err)
			}
		})
	}
	for _, adjust := range []func(*Client){resume, force} {
		r := newRig(t)
		made(t, randomBytes(5000, 23), r.here, "f")
		testrig.Must(t, os.Symlink(secret, filepath.Join(r.there, ".f.iwarp-part")))
		r.leaves(r.put("f"), message.NotRegular)
		testrig.Must(t, r.put("f", adjust))
		has(t, randomBytes(5000, 23), r.there, "f")
		lists(t, r.there, "f")
		has(t, []byte("secret"), secret)
	}
}

// TestDenied has a directory that cannot be written to, and a file that cannot be read.
func TestDenied(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write and read everything")
	}
	r := newRig(t)
	soft(t, r.there)
	testrig.Must(t, os.Chmod(made(t, nil, r.here, "f"), 0))
	if r.put("f") == nil || r.outcome() != message.NotRegular {
		t.Error("it was read")
	}
	made(t, nil, r.here, "g")
	testrig.Must(t, os.Chmod(r.there, 0o500))
	r.leaves(r.put("g"), message.Denied)
}

// TestFull has no room for the file: a limit of this process stands for that of a disk.
func TestFull(t *testing.T) {
	var limit unix.Rlimit
	testrig.Must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	r, data := newRig(t), randomBytes(5<<20, 24)
	made(t, data, r.here, "f")
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	testrig.Must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 2<<20 + 1000, Max: limit.Max}))
	err := r.put("f")
	testrig.Must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	r.leaves(err, message.Full)
	lists(t, r.there, ".f.iwarp-part")
	testrig.Must(t, r.put("f", resume))
	has(t, data, r.there, "f")
	testrig.Must(t, r.served())
}
