package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A sink is where what is received goes: into a directory, with the first name of each path replaced by another, if
// there is one.
type sink struct {
	root *os.Root
	dir  string // in root
	// in place of the first name; "": that stays. For a directory it is what that goes into, unless whole is set
	as      string
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

// resolve returns where in root a path belongs.
func (s *sink) resolve(p string) (string, error) {
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

// make makes what has no bytes.
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

// contain makes the directory that a directory goes into, and has its name on disk: the end syncs the names in it
// alone. So a directory goes to the same place when it is copied again.
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

// sync has the names in a directory on disk.
func (s *sink) sync(dir string) error {
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}
