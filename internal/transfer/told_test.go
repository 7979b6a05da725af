package transfer

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// says wants something to have been told, and forgets what was.
func (r *rig) says(want string) {
	r.t.Helper()
	var all []string
	for _, e := range r.told {
		if o, ok := e.(*Outcome); ok {
			all = append(all, o.Error())
		}
	}
	if !slices.Contains(all, want) {
		r.t.Errorf("%s is not told in\n%s", want, strings.Join(all, "\n"))
	}
	r.told = nil
}

// TestToldByItsName has what is in the way be told by the name that it has, and --force be told of only where it helps.
func TestToldByItsName(t *testing.T) {
	r := newRig(t)
	t.Chdir(r.here)
	made(t, nil, r.there, "archive", "f")
	made(t, nil, r.here, "plain")
	get := func(from, to string, adjust ...func(*Client)) error {
		_, err := r.client(adjust...).Get(testrig.Within(t), []string{from}, to)
		return err
	}
	r.leaves(get("archive/f", "plain"), message.Exists)
	r.says(`"plain": exists already: --force replaces it, --resume leaves it if it is the same`)
	r.leaves(get("archive", "plain", recursive, force), message.NotRegular)
	r.says(`"plain": not copied: there is something else than a directory`)
	testrig.Must(t, get("archive/f", "other"))
	r.says(`"other": copied`)
	testrig.Must(t, os.Mkdir("d", 0o700))
	testrig.Must(t, get("archive", "d", recursive))
	r.says(`"d/archive/f": copied`)
	made(t, nil, r.here, "e", "archive")
	r.leaves(get("archive", "e", recursive, force), message.NotRegular)
	r.says(`"e/archive": not copied: there is a file, and no directory`)
	if get("nothing", "other") == nil {
		t.Error("what is not there was copied")
	}
	r.says(`"nothing": not copied: no such file or directory`)

	put := func(to string, adjust ...func(*Client)) error {
		_, err := r.client(adjust...).Put(testrig.Within(t), []string{"plain"}, to)
		return err
	}
	r.leaves(put("archive/f"), message.Exists)
	r.says(`"plain": exists already: --force replaces it, --resume leaves it if it is the same: its name there is "f"`)
	testrig.Must(t, put("archive"))
	r.leaves(put("archive"), message.Exists)
	r.says(`"plain": exists already: --force replaces it, --resume leaves it if it is the same`)
}

// TestToldOfAll has what is left of all that is served be told by its name there, and what comes by its name here.
func TestToldOfAll(t *testing.T) {
	r := newRig(t)
	t.Chdir(r.here)
	made(t, nil, r.there, "d", "f")
	made(t, nil, r.there, "d", "f"+message.PartSuffix)
	for _, to := range []string{"whole", "whole"} {
		_, err := r.client(recursive, resume).Get(testrig.Within(t), []string{""}, to)
		if !errors.As(err, new(*IncompleteError)) {
			t.Fatal(err)
		}
	}
	var all []string
	for _, e := range r.told {
		if o, ok := e.(*Outcome); ok {
			all = append(all, o.Path)
		}
	}
	slices.Sort(all)
	want := []string{"d/f" + message.PartSuffix, "d/f" + message.PartSuffix,
		filepath.Join(filepath.Dir(must(filepath.EvalSymlinks(r.here))), filepath.Base(r.here),
			"whole", "d", "f"), "whole/d/f"}
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("%q, and not %q", all, want)
	}
}

func must(s string, err error) string {
	if err != nil {
		return err.Error()
	}
	return s
}

// TestSlash has a slash at the end want a directory for a file, as cp does; a directory still makes the one that it
// goes into.
func TestSlash(t *testing.T) {
	r := newRig(t)
	made(t, nil, r.here, "d", "f")
	put := func(name, to string, adjust ...func(*Client)) error {
		_, err := r.client(adjust...).Put(testrig.Within(t), []string{filepath.Join(r.here, name)}, to)
		return err
	}
	for _, adjust := range []func(*Client){force, resume, recursive} {
		if err := put("d/f", "new/", adjust); err == nil ||
			err.Error() != `"new": not copied: there is no such directory` {
			t.Errorf("%v", err)
		}
	}
	lists(t, r.there)
	testrig.Must(t, put("d", "new/", recursive))
	testrig.Must(t, put("d/f", "new/"))
	lists(t, r.there, "new", "new/d", "new/d/f", "new/f")
	if err := put("d/f", "new/f/", force); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// TestOneWrongName has a wrong name among several leave the others, as in the other direction.
func TestOneWrongName(t *testing.T) {
	r := newRig(t)
	t.Chdir(r.here)
	made(t, nil, r.here, "f")
	sum, err := r.client().Put(testrig.Within(t), []string{"none", "f"}, "")
	r.leaves(err, message.OK)
	r.says(`"none": not copied: no such file or directory`)
	if sum.Files != 1 || sum.Left != 1 {
		t.Errorf("%+v", sum)
	}
	lists(t, r.there, "f")
	var left *IncompleteError
	if _, err := r.client().Put(testrig.Within(t), []string{"none", "nor"}, ""); !errors.As(err,
		&left) || left.Left != 2 {
		t.Errorf("%v", err)
	}
}

// TestLog has the log tell which files of the directory were read, written and refused, and why.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	logger := func(c *ServerConfig) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	logged := func(want string) {
		t.Helper()
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, &log)
		}
		log.Reset()
	}
	r := newRig(t, logger)
	made(t, nil, r.here, "f")
	made(t, nil, r.there, "a", "b", "g")
	_, err := r.client().Put(testrig.Within(t), []string{filepath.Join(r.here, "f")}, "a/name")
	testrig.Must(t, errors.Join(err, r.served()))
	logged("level=INFO msg=copied remote=client path=a/name put=true")
	_, err = r.client().Put(testrig.Within(t), []string{filepath.Join(r.here, "f")}, "a/name")
	r.leaves(err, message.Exists)
	testrig.Must(t, r.served())
	logged(`level=WARN msg="exists already: --force replaces it, --resume leaves it if it is the same" remote=client path=a/name put=true`)
	testrig.Must(t, errors.Join(r.get("a/b/g"), r.served()))
	logged("msg=copied remote=client path=a/b/g put=false")
	_, err = r.client(recursive).Get(testrig.Within(t), []string{""}, filepath.Join(r.here, "whole"))
	testrig.Must(t, errors.Join(err, r.served()))
	logged("msg=copied remote=client path=a/b/g put=false")
	made(t, nil, r.here, "d", "x"+message.PartSuffix)
	_, err = r.client(recursive).Put(testrig.Within(t), []string{filepath.Join(r.here, "d")}, "a")
	if err == nil {
		t.Error("nothing is left out")
	}
	testrig.Must(t, r.served())
	logged(`level=WARN msg="not copied" remote=client path=a/d/x.iwarp-part put=true`)
	_, err = r.client().Put(testrig.Within(t), []string{filepath.Join(r.here, "f")}, "none/f")
	if err == nil {
		t.Error("there is no such directory")
	}
	testrig.Must(t, r.served())
	logged(`level=WARN msg="not copied" remote=client path=none/f put=true reason="there is no directory to put it in"`)
	r = newRig(t, logger, func(c *ServerConfig) { c.Writable = false })
	made(t, nil, r.here, "f")
	if r.put("f") == nil {
		t.Error("it was taken")
	}
	testrig.Must(t, r.served())
	logged(`level=WARN msg="the server takes no files: it is to run with --writable for that" remote=client path=. put=true`)
}

// TestMissedPaths has a client leave out what no path may be: it is told as the client has it.
func TestMissedPaths(t *testing.T) {
	for p, want := range map[string]string{"x": "d/x", "a/x": "d/a/x", "../x": "../x", "a/../../x": "a/../../x",
		"/x": "/x", "": "", ".": "."} {
		if got := (&sink{dir: "d", dirs: true}).origin(p); filepath.ToSlash(got) != want {
			t.Errorf("%q is told as %q, not %q", p, got, want)
		}
	}
}
