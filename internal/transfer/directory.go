package transfer

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A directory is one that is being received.
type directory struct {
	at string // in the sink's root
	// made tells that it was made for this copy, or for one that was cut. What was there has the mode and the time that
	// somebody else gave it, and keeps them.
	made bool
}

// inside returns where in root a path belongs, whose directory has to be the one that is being received: it is no
// symbolic link then, which the user of this host may have put there, and meant for somewhere else.
func (s *sink) inside(p string) (string, error) {
	at, err := s.resolve(p)
	if err != nil || !strings.Contains(p, "/") {
		return at, err
	}
	if n := len(s.entered) - 1; n < 0 || s.entered[n].at != path.Dir(at) {
		return "", fail(message.BadName, "its directory was not entered")
	}
	return at, nil
}

// enter makes a directory, unless there is one. It is in the one that was entered last, or the first: so a path bounds
// how many are entered at a time.
func (s *sink) enter(at string) error {
	if !s.dirs {
		return fail(message.NotRegular, "no directory was asked for")
	}
	if n := len(s.entered) - 1; n >= 0 && s.entered[n].at != path.Dir(at) {
		return fail(message.BadName, "the directory before was not left")
	}
	d := directory{at: at, made: true}
	err := s.mkdir(at)
	if errors.Is(err, fs.ErrExist) {
		if err = s.isDirectory(at); err == nil {
			d.made = s.isMarked(at)
		}
	}
	if err == nil {
		s.entered = append(s.entered, d)
	}
	return err
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
	at, err := s.resolve(o.Path)
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

// complete gives a directory that was made for this its mode and time, too. It has them before it is known as complete,
// and what may take long comes last. The mark goes in two steps, as the time changes when it leaves the directory:
// beside that it says still what is to be done.
func (s *sink) complete(at string, o message.Offer) error {
	d, err := s.root.Open(at)
	if err != nil {
		return err
	}
	defer d.Close()
	const own = 0o700 // by which the mark can go
	mode := fs.FileMode(o.Mode)
	if err := s.dress(at, mode|own, o, new(lacks)); err != nil {
		return err
	}
	if err := s.unmark(at, d); err != nil && !errors.Is(err, fs.ErrNotExist) { // another copy may have been faster
		return err
	}
	var lacks lacks
	if err := s.dress(at, mode, o, &lacks); err != nil {
		return err
	}
	if s.isMarkedBeside(at) {
		if err := s.root.Remove(PartName(at)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := syncDir(d); err != nil {
		return err
	}
	return lacks.err()
}

// dress gives a directory a mode, and its time.
func (s *sink) dress(at string, mode fs.FileMode, o message.Offer, lacks *lacks) error {
	lacks.addTime(o)
	if err := lacks.add("its time", s.root.Chtimes(at, time.Time{}, timeOf(o))); err != nil {
		return err
	}
	return lacks.add("its mode", s.root.Chmod(at, mode))
}
