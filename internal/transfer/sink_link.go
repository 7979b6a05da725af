package transfer

import (
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// link makes a symbolic link. All that is above it within the tree that is received was entered, and so is a directory,
// and no link itself; and so is what it goes up from: its target is where message.CheckLink takes it to be.
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
	if err := s.checkTarget(at, o.Detail); err != nil {
		return err
	}
	err := s.makeSymlink(at, o.Detail)
	if err == nil {
		s.copied.add(s.name(at))
	}
	return err
}

// checkTarget refuses a target that goes up from anything but a directory which is there: that stays one, as nothing
// that is received takes its place. A link to the top of the tree in its place would have the next step lead out of it.
func (s *sink) checkTarget(at, to string) error {
	// the directories that it goes down through, and how many of them are there
	dir, down, sure := path.Dir(at), []string(nil), 0
	for name := range strings.SplitSeq(to, "/") {
		switch {
		case name == "" || name == ".":
		case name != "..":
			if !filepath.IsLocal(name) || filepath.Base(name) != name {
				return fail(message.BadName, "a symbolic link with a name that this system does not have")
			}
			dir = path.Join(dir, name)
			down = append(down, dir)
		default:
			for ; sure < len(down); sure++ {
				if s.isDirectory(down[sure]) != nil {
					return fail(message.BadName, "a symbolic link that goes up again from "+
						strconv.Quote(path.Base(down[sure]))+", and no such directory has come before it")
				}
			}
			down = down[:max(len(down)-1, 0)]
			dir, sure = path.Dir(dir), len(down)
		}
	}
	return nil
}

// makeSymlink makes a symbolic link, unless there is the same. One that takes another's place does so in one step.
func (s *sink) makeSymlink(at, to string) error {
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
	part := PartName(at)
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
