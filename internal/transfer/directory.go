package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A directory is one that is being received.
type directory struct {
	at string // in the sink's root
	// made tells that it was made for this copy, or for one that was cut. What was there has the mode and the time that somebody else gave it, and keeps them.
	made bool
}

// unfinished is in each directory that was made for a copy, until it has its mode and time. So one that is cut is known by those that go on with it; and
// no sender copies such a directory: it may be what that sender is making itself, at any number of levels.
const unfinished = message.PartSuffix

// isUnfinished reports whether a directory has been made for a copy that has not come to its end there.
func isUnfinished(root *os.Root, at string) bool {
	info, err := root.Lstat(path.Join(at, unfinished))
	return err == nil && info.Mode().IsRegular()
}

// inside returns where in root a path belongs, whose directory has to be the one that is being received: it is no symbolic link then, which the user of
// this host may have put there, and meant for somewhere else.
func (s *sink) inside(p string) (string, error) {
	at, err := s.place(p)
	if err != nil || !strings.Contains(p, "/") {
		return at, err
	}
	if n := len(s.entered) - 1; n < 0 || s.entered[n].at != path.Dir(at) {
		return "", fail(message.BadName, "its directory was not entered")
	}
	return at, nil
}

// enter makes a directory, unless there is one.
func (s *sink) enter(at string) error {
	if !s.dirs {
		return fail(message.NotRegular, "no directory was asked for")
	}
	d := directory{at: at, made: true}
	err := s.mkdir(at)
	if errors.Is(err, fs.ErrExist) {
		d.made, err = isUnfinished(s.root, at), s.isDirectory(at)
	}
	if err == nil {
		s.entered = append(s.entered, d)
	}
	return err
}

// mkdir makes a directory that is unfinished.
func (s *sink) mkdir(at string) error {
	if err := s.root.Mkdir(at, 0o700); err != nil {
		return err
	}
	f, err := s.root.OpenFile(path.Join(at, unfinished), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		_ = s.root.Remove(at)
		return err
	}
	return f.Close()
}

// isDirectory refuses what is none.
func (s *sink) isDirectory(at string) error {
	info, err := s.root.Lstat(at)
	if err == nil && !info.IsDir() {
		err = fail(message.NotRegular, "there is "+kindOf(info.Mode())+", and no directory")
	}
	return err
}

// leave has the names in a directory on disk.
func (s *sink) leave(o message.Offer) error {
	at, err := s.place(o.Path)
	if err != nil {
		return err
	}
	n := len(s.entered) - 1
	if n < 0 || s.entered[n].at != at {
		return fail(message.BadName, "it was not entered")
	}
	made := s.entered[n].made
	s.entered = s.entered[:n]
	if made {
		return s.complete(at, o)
	}
	return s.sync(at)
}

// complete gives a directory that was made for this its mode and time, too. It has them before it is known as complete, and what may take long comes
// last: the going of the mark changes the time alone, which is put right at once.
func (s *sink) complete(at string, o message.Offer) error {
	d, err := s.root.Open(at)
	if err != nil {
		return err
	}
	defer d.Close()
	const own = 0o700 // by which the mark can go
	mode := fs.FileMode(o.Mode)
	if err := s.dress(at, mode|own, o); err != nil {
		return err
	}
	if err := s.root.Remove(path.Join(at, unfinished)); err != nil && !errors.Is(err, fs.ErrNotExist) { // another copy may have been faster
		return err
	}
	if err := s.dress(at, mode, o); err != nil {
		return err
	}
	return syncDir(d)
}

// dress gives a directory a mode, and its time.
func (s *sink) dress(at string, mode fs.FileMode, o message.Offer) error {
	if err := s.root.Chtimes(at, time.Time{}, timeOf(o)); err != nil {
		return err
	}
	return s.root.Chmod(at, mode)
}
