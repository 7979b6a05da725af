package programs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A Distrust is why a library is not loaded: who else may have written what the program would run.
type Distrust struct {
	Path   string // a file of the library, a directory on the way to it, or a link
	Owner  uint32
	Mode   fs.FileMode // if that is what is wrong: others may write
	Hidden bool        // the owner may be root, as a user namespace shows it
}

// Error says what is wrong, and what to do.
func (d *Distrust) Error() string {
	return fmt.Sprintf("the library is not taken: %s; name one that you trust by IWARP_LIBRARY", d.what())
}

func (d *Distrust) what() string {
	if d.Mode != 0 {
		return fmt.Sprintf("others than its owner can write %s (%v)", d.Path, d.Mode)
	}
	if d.Hidden {
		return fmt.Sprintf("%s belongs to uid %d, as which this user namespace shows root, and all other users that it has not", d.Path, d.Owner)
	}
	return fmt.Sprintf("%s belongs to %s", d.Path, ownerName(d.Owner))
}

func ownerName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return fmt.Sprintf("%s (uid %s)", u.Username, id)
	}
	return "uid " + id
}

// Trust checks whose the library is. Root and the caller are trusted, and root trusts only itself: its files have to
// belong to these, and all directories on the way to them, which nobody else may write to. A sticky directory is no
// better than others: who can write there can put something else in the place of what was not there yet. The error is
// a *Distrust. A library that the user names by IWARP_LIBRARY is taken in any case; then the notice says what else
// there would have been an error for.
func (l Library) Trust() (notice string, err error) { return caller().trust(l, named()) }

// named reports whether the user has named the library.
func named() bool { return os.Getenv("IWARP_LIBRARY") != "" }

// A user of the library, and how its user namespace shows users that it has not.
type loader struct {
	uid      uint32
	overflow uint32
	hides    bool // root is among these
}

func caller() loader {
	c := loader{uid: uint32(os.Geteuid()), overflow: 65534}
	text, _ := os.ReadFile("/proc/sys/kernel/overflowuid")
	if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32); err == nil {
		c.overflow = uint32(n)
	}
	uids, err := os.ReadFile("/proc/self/uid_map") // inside, outside, how many
	c.hides = err == nil && strings.Join(strings.Fields(string(uids)), " ") != "0 0 4294967295"
	return c
}

func (c loader) trust(l Library, named bool) (notice string, err error) {
	for _, file := range []string{l.Preload(), l.Engine()} {
		if err = c.walk(file); err != nil {
			break
		}
	}
	distrust := (*Distrust)(nil)
	if named && errors.As(err, &distrust) {
		why := distrust.what()
		if owner := c.stranger(l); distrust.Mode != 0 && owner != nil {
			why += ", and " + owner.what()
		}
		return fmt.Sprintf("the library in %s is taken as IWARP_LIBRARY names it, though %s", l.Dir, why), nil
	}
	return "", err
}

// stranger returns that a file of the library belongs to somebody who is not trusted, or nil.
func (c loader) stranger(l Library) *Distrust {
	for _, file := range []string{l.Preload(), l.Engine()} {
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		if d := (*Distrust)(nil); errors.As(c.check(file, info), &d) && d.Mode == 0 {
			return d
		}
	}
	return nil
}

// Narrow has what this process and its children make be written by the owner alone, until restore is called: Go makes
// the directory of caches, too, in which the library is.
func Narrow() (restore func()) {
	before := syscall.Umask(0o022)
	syscall.Umask(before | 0o022)
	return func() { syscall.Umask(before) }
}

// maxLinks is how many symbolic links a path has at most, as in Linux.
const maxLinks = 40

// walk goes the way to a file, as the system goes it, and checks each step. What is not there yet is nobody's.
func (c loader) walk(path string) error {
	at, rest, links := "/", parts(path), 0
	for {
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = c.check(at, info)
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return cmp.Or[error](err, &fs.PathError{Op: "readlink", Path: at, Err: syscall.ELOOP})
			}
			if filepath.IsAbs(to) {
				at = "/"
			} else {
				at = filepath.Dir(at)
			}
			rest = append(parts(to), rest...)
			continue
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// parts are the names in a path.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// check judges one step. The mode of a link says nothing.
func (c loader) check(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	hidden := c.hides && stat.Uid == c.overflow // then it is no user's own, be it that of the caller
	switch {
	case hidden, stat.Uid != 0 && (c.uid == 0 || stat.Uid != c.uid):
		return &Distrust{Path: path, Owner: stat.Uid, Hidden: hidden}
	case info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSymlink == 0:
		return &Distrust{Path: path, Owner: stat.Uid, Mode: info.Mode()}
	}
	return nil
}
