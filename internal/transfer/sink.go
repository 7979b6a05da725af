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
	base    string // what root goes by where its files are told of
	from    string // what was asked for, of which only is the last name; "": all there is, or nothing was
	links   bool   // symbolic links are made
	dirs    bool   // directories are made
	force   bool
	resume  bool
	copied  copied      // by the name on this host
	entered []directory // the directories that are being received, each in the one before
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
	at, err := s.inside(p)
	if err == nil && s.copied[s.name(at)] {
		err = fail(message.Twice, "")
	}
	return at, err
}

// name is that of what is in root, on this host.
func (s *sink) name(at string) string { return filepath.Join(s.root.Name(), at) }

// make makes what has no octets.
func (s *sink) make(o message.Offer) error {
	if o.Kind == message.Leave {
		return s.leave(o)
	}
	if o.Kind == message.Directory && s.dirs && s.as != "" && !s.whole {
		if err := s.contain(); err != nil {
			return err
		}
	}
	at, err := s.inside(o.Path)
	switch {
	case err != nil:
		return err
	case o.Kind == message.Directory:
		return s.enter(at)
	default:
		return s.link(at, o)
	}
}

// contain makes the directory that a directory goes into, and has its name on disk: the end syncs the names in it alone. So a directory
// goes to the same place when it is copied again.
func (s *sink) contain() error {
	at := path.Join(s.dir, s.as)
	if err := s.root.Mkdir(at, 0o777); errors.Is(err, fs.ErrExist) {
		return fail(message.NotRegular, "there is something else than a directory")
	} else if err != nil {
		return err
	}
	above := s.dir
	s.dir, s.as = at, ""
	return s.sync(above)
}

// timeOf is when what is offered was changed last.
func timeOf(o message.Offer) time.Time { return time.Unix(o.Seconds, int64(o.Nanoseconds)) }

// link makes a symbolic link. All that is above it within the tree that is received was entered, and so is a directory, and no link itself: its
// target is where message.CheckLink takes it to be.
func (s *sink) link(at string, o message.Offer) error {
	if !s.links {
		return fail(message.NotRegular, "a server makes no symbolic links")
	}
	if err := message.CheckLink(o.Path, o.Detail); err != nil {
		return fail(message.BadName, err.Error())
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

// tie makes a symbolic link, unless there is the same. One that takes another's place does so in one step.
func (s *sink) tie(at, to string) error {
	if now, err := s.root.Readlink(at); err == nil && s.resume && now == to {
		return nil
	}
	there, err := s.mayTie(at)
	if err != nil {
		return err
	}
	if !there {
		return s.root.Symlink(to, at)
	}
	part := partOf(at)
	if err := s.sweep(at); err != nil {
		return err
	}
	if err := s.root.Symlink(to, part); err != nil {
		return err
	}
	return s.root.Rename(part, at)
}

// mayTie reports whether a link takes the place of something, if that is allowed.
func (s *sink) mayTie(at string) (there bool, err error) {
	info, err := s.root.Lstat(at)
	switch {
	case err != nil: // there is nothing
		return false, nil
	case info.Mode()&fs.ModeSymlink == 0 && special(info) != nil:
		return true, special(info)
	case !s.force:
		return true, fail(message.Exists, "")
	}
	return true, nil
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
