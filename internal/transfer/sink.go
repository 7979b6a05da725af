package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A sink is where what is received goes: into a directory, with the first name of each path replaced by another, if there is one.
type sink struct {
	root    *os.Root
	dir     string // in root
	as      string // in place of the first name; "": that stays. For a directory it is what that goes into, unless whole is set
	whole   bool   // the directory that is received is as
	only    string // what the first name has to be; "": anything
	links   bool   // symbolic links are made
	dirs    bool   // directories are made
	force   bool
	resume  bool
	copied  copied   // by the name on this host
	entered []string // the directories that are being received, each in the one before
}

// place returns where in root a path belongs.
func (s *sink) place(p string) (string, error) {
	first, rest, deeper := strings.Cut(p, "/")
	if s.only != "" && first != s.only || deeper && !s.dirs {
		return "", fail(message.BadName, "it was not asked for")
	}
	if s.as != "" {
		first = s.as
	}
	at := path.Join(s.dir, first, rest)
	if !filepath.IsLocal(filepath.FromSlash(at)) {
		return "", fail(message.BadName, "this system has no such name")
	}
	return at, nil
}

// vacant returns where in root a file belongs, unless another source has brought something there.
func (s *sink) vacant(p string) (string, error) {
	at, err := s.place(p)
	if err == nil && s.copied[s.name(at)] {
		err = fail(message.Twice, "")
	}
	return at, err
}

// name is that of what is in root, on this host.
func (s *sink) name(at string) string { return filepath.Join(s.root.Name(), at) }

// make makes what has no octets.
func (s *sink) make(o message.Offer) error {
	if o.Kind == message.Directory && s.dirs && s.as != "" && !s.whole {
		if err := s.contain(); err != nil {
			return err
		}
	}
	at, err := s.place(o.Path)
	if err != nil {
		return err
	}
	switch o.Kind {
	case message.Directory:
		return s.enter(at)
	case message.Leave:
		return s.leave(at, o)
	default:
		return s.link(at, o)
	}
}

// contain makes the directory that a directory goes into, and has its name on disk: the end syncs the names in it alone. So a directory
// goes to the same place when it is copied again.
func (s *sink) contain() error {
	at := path.Join(s.dir, s.as)
	if err := s.root.Mkdir(at, 0o777); err != nil {
		return err
	}
	above := s.dir
	s.dir, s.as = at, ""
	return s.sync(above)
}

// enter makes a directory, unless there is one.
func (s *sink) enter(at string) error {
	if !s.dirs {
		return fail(message.NotRegular, "no directory was asked for")
	}
	err := s.root.Mkdir(at, 0o700)
	if errors.Is(err, fs.ErrExist) {
		info, bad := s.root.Lstat(at)
		switch {
		case bad != nil:
			return bad
		case !info.IsDir():
			return fail(message.Exists, "it is no directory here")
		}
		err = nil
	}
	if err == nil {
		s.entered = append(s.entered, at)
	}
	return err
}

// leave gives a directory its mode and time, and has the names in it on disk.
func (s *sink) leave(at string, o message.Offer) error {
	n := len(s.entered) - 1
	if n < 0 || s.entered[n] != at {
		return fail(message.BadName, "it was not entered")
	}
	s.entered = s.entered[:n]
	if err := s.sync(at); err != nil {
		return err
	}
	if err := s.root.Chmod(at, fs.FileMode(o.Mode)); err != nil {
		return err
	}
	return s.root.Chtimes(at, time.Time{}, timeOf(o))
}

// timeOf is when what is offered was changed last.
func timeOf(o message.Offer) time.Time { return time.Unix(o.Seconds, int64(o.Nanoseconds)) }

// link makes a symbolic link. All that is above it within the tree that is received is a directory, and no link itself, so that its
// target is where message.CheckLink takes it to be.
func (s *sink) link(at string, o message.Offer) error {
	if !s.links {
		return fail(message.NotRegular, "a server makes no symbolic links")
	}
	if err := message.CheckLink(o.Path, o.Detail); err != nil {
		return fail(message.BadName, err.Error())
	}
	if n := len(s.entered) - 1; n < 0 || s.entered[n] != path.Dir(at) {
		return fail(message.BadName, "its directory was not entered")
	}
	if s.copied[s.name(at)] {
		return fail(message.Twice, "")
	}
	err := s.tie(at, o.Detail)
	if err == nil {
		s.copied.add(s.name(at))
	}
	return err
}

// tie makes a symbolic link, unless there is the same.
func (s *sink) tie(at, to string) error {
	if now, err := s.root.Readlink(at); err == nil && s.resume && now == to {
		return nil
	}
	if err := s.clear(at); err != nil {
		return err
	}
	return s.root.Symlink(to, at)
}

// clear makes way for a link, if that is allowed.
func (s *sink) clear(at string) error {
	info, err := s.root.Lstat(at)
	switch {
	case err != nil: // there is nothing
		return nil
	case info.IsDir():
		return fail(message.Exists, "it is a directory here")
	case !s.force:
		return fail(message.Exists, "")
	}
	return s.root.Remove(at)
}

// sync has the names in a directory on disk.
func (s *sink) sync(dir string) error {
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}
