package transfer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// unfinished is in each directory that was made for a copy, until it has its mode and time. So one that is cut is known
// by those that go on with it; and no sender copies such a directory: it may be what that sender is making itself, at
// any number of levels.
const unfinished = message.PartSuffix

// markText is in the mark of a directory, which so is no part of a file where it lies beside the directory.
const markText = "A directory that iwarp cp has made, and to which it has not given its mode and time yet.\n"

// isUnfinished reports whether a directory has been made for a copy that has not come to its end there.
func isUnfinished(root *os.Root, at string) bool {
	info, err := root.Lstat(path.Join(at, unfinished))
	return err == nil && info.Mode().IsRegular()
}

// mark has a directory be unfinished.
func (s *sink) mark(at string) error {
	f, err := s.root.OpenFile(path.Join(at, unfinished), os.O_WRONLY|os.O_CREATE|noWait, partMode)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(markText), 0)
	return errors.Join(err, f.Close())
}

// isMarked reports whether a directory that is there is unfinished, and has the mark in it then.
func (s *sink) isMarked(at string) bool {
	switch {
	case isUnfinished(s.root, at):
		_ = s.mark(at) // with its text
	case s.isMarkedBeside(at):
		s.markAgain(at)
	default:
		return false
	}
	return true
}

// isMarkedBeside reports whether the mark of a directory is beside it, as somebody was killed who was just about to end
// with it.
func (s *sink) isMarkedBeside(at string) bool {
	info, err := s.root.Lstat(PartName(at))
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(markText)) {
		return false
	}
	f, err := s.root.OpenFile(PartName(at), os.O_RDONLY|noWait, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(len(markText))))
	return err == nil && string(text) == markText
}

// markAgain has the mark that is beside a directory be in it. If that fails it is still marked.
func (s *sink) markAgain(at string) {
	if s.root.Chmod(at, 0o700) == nil && s.mark(at) == nil {
		_ = s.root.Remove(PartName(at))
	}
}

// unmark has the mark that is in a directory be beside it, if it can be there.
func (s *sink) unmark(at string, d *os.File) error {
	above, err := s.root.Open(path.Dir(at))
	if err != nil {
		return err
	}
	defer above.Close()
	err = renameNew(d, unfinished, above, path.Base(PartName(at)))
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrExist) {
		err = s.root.Remove(path.Join(at, unfinished))
	}
	return err
}

// mkdir makes a directory that is unfinished. It has the name of a part until its mark is in it: whoever is killed
// before leaves none that the next copy would take for somebody else's.
func (s *sink) mkdir(at string) error {
	for range 4 { // another copy may make the same one, and take it away under our hands
		if _, err := s.root.Lstat(at); err == nil {
			return fs.ErrExist
		}
		if err := s.mkdirAs(PartName(at), at); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if err := s.root.Mkdir(at, 0o700); err != nil {
		return err
	}
	err := s.mark(at)
	if err != nil {
		_ = s.root.Remove(at)
	}
	return err
}

// mkdirAs makes a directory with its mark under one name, or takes what was left so, and gives it the other. It is not
// supported where something else has that name, or a directory cannot be renamed so that it takes no other's place.
func (s *sink) mkdirAs(part, at string) error {
	if err := s.root.Mkdir(part, 0o700); errors.Is(err, fs.ErrExist) && !s.isLeft(part) {
		return errors.ErrUnsupported
	} else if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err := s.mark(part)
	if err == nil {
		err = s.rename(part, at)
	}
	if err != nil {
		_ = s.root.Remove(path.Join(part, unfinished))
		_ = s.root.Remove(part)
	}
	return err
}

// isLeft reports whether what is there is a directory in which at most a mark is.
func (s *sink) isLeft(part string) bool {
	if info, err := s.root.Lstat(part); err != nil || !info.IsDir() {
		return false
	}
	d, err := s.root.Open(part)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(2)
	return errors.Is(err, io.EOF) || err == nil && len(names) == 1 && names[0] == unfinished
}

// rename gives what is in a directory another name there that nothing has.
func (s *sink) rename(from, to string) error {
	d, err := s.root.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer d.Close()
	return renameNew(d, path.Base(from), d, path.Base(to))
}
