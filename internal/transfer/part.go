package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/goiwarp/iwarp/internal/filelock"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A part is a file that is not complete. Whoever writes to it has a lock on it, where the system has such.
type part struct {
	*os.File
	root *os.Root
	at   string // where it is in root
	had  int64  // bytes that were there
	done bool   // it has its name
}

// partMode is the mode of a part until it has that of the file.
const partMode = 0o600

// maxName is how long a name may be on most systems, in bytes.
const maxName = 255

// PartName returns the name that a file has until it is complete, beside the one that it gets.
func PartName(at string) string {
	dir, name := path.Split(at)
	if part := "." + name + message.PartSuffix; len(part) <= maxName {
		return dir + part
	}
	sum := sha256.Sum256([]byte(name))
	return dir + "." + hex.EncodeToString(sum[:]) + message.PartSuffix
}

// openPart makes a part, or opens that of a cut transfer if it is to be resumed.
func (s *sink) openPart(at string) (*part, error) {
	p := &part{root: s.root, at: PartName(at)}
	err := p.create()
	if errors.Is(err, fs.ErrExist) && (s.resume || s.force) && s.removeOther(p.at) {
		err = p.create()
	}
	if !errors.Is(err, fs.ErrExist) {
		return p.orClose(err)
	}
	if err := p.openOld(at); err != nil {
		return p.orClose(err)
	}
	switch {
	case s.resume || p.had == 0: // nothing is lost; and whoever has just made it has lost this race
		return p, nil
	case !s.force:
		return p.orClose(fail(message.Unfinished, ""))
	}
	err = errors.Join(p.root.Remove(p.at), p.Close())
	if err == nil {
		p = &part{root: s.root, at: p.at}
		err = p.create()
	}
	return p.orClose(err)
}

// removeOther takes away what an earlier copy has left under the name of a part when that was not to be a file: a link,
// or a directory with at most its mark in it. It reports whether it has.
func (s *sink) removeOther(part string) bool {
	if _, err := s.root.Readlink(part); err == nil {
		return s.root.Remove(part) == nil
	}
	if !s.isLeft(part) {
		return false
	}
	_ = s.root.Remove(path.Join(part, unfinished))
	return s.root.Remove(part) == nil
}

// sweep takes away whatever an earlier copy has left under the name of a part, unless another copy is at it.
func (s *sink) sweep(at string) error {
	p := &part{root: s.root, at: PartName(at)}
	if s.removeOther(p.at) {
		return nil
	}
	err := p.openOld(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if p, err = p.orClose(err); err != nil {
		return err
	}
	return errors.Join(s.root.Remove(p.at), p.Close())
}

// orClose returns the part, or an error.
func (p *part) orClose(err error) (*part, error) {
	if err == nil {
		return p, nil
	}
	if p.File != nil {
		_ = p.Close()
	}
	return nil, err
}

// create makes a part that nobody has.
func (p *part) create() (err error) {
	if p.File, err = p.root.OpenFile(p.at, os.O_RDWR|os.O_CREATE|os.O_EXCL, partMode); err != nil {
		return err
	}
	return p.own()
}

// openOld opens a part that was left.
func (p *part) openOld(at string) (err error) {
	info, err := p.root.Lstat(p.at)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fail(message.NotRegular, "what an earlier copy seems to have left is "+kindOf(info.Mode()))
	}
	if whole, err := p.root.Lstat(at); err == nil && os.SameFile(whole, info) {
		// It was complete, and its second name stayed: see name.
		if err := p.root.Remove(p.at); err != nil {
			return err
		}
		return p.create()
	}
	p.File, err = p.root.OpenFile(p.at, os.O_RDWR|noWait, 0)
	if errors.Is(err, fs.ErrPermission) {
		if err := p.makeWritable(); err != nil {
			return err
		}
		p.File, err = p.root.OpenFile(p.at, os.O_RDWR|noWait, 0)
	}
	if err != nil {
		return err
	}
	if err := p.own(); err != nil {
		return err
	}
	info, err = p.Stat()
	if err == nil {
		p.had = info.Size()
	}
	return err
}

// makeWritable gives a part that has the mode of a file that its owner must not write to that of a part again. Where it
// can be read, nobody else is to have it meanwhile: its mode is to stay when it is just about to have its name.
func (p *part) makeWritable() (err error) {
	p.File, err = p.root.OpenFile(p.at, os.O_RDONLY|noWait, 0)
	if errors.Is(err, fs.ErrPermission) {
		return p.root.Chmod(p.at, partMode)
	}
	if err != nil {
		return err
	}
	if err := p.own(); err != nil {
		return err
	}
	return errors.Join(p.Chmod(partMode), p.Close())
}

// own locks the part, which is to be the one with this name when it is locked: another transfer may just have completed
// it.
func (p *part) own() error {
	switch err := filelock.Lock(p.File, filelock.Exclusive); {
	case errors.Is(err, filelock.ErrHeld):
		return fail(message.Busy, "")
	case err != nil:
		return err
	}
	mine, err := p.Stat()
	if err != nil {
		return err
	}
	if named, err := p.root.Lstat(p.at); err != nil || !os.SameFile(named, mine) {
		return fail(message.Busy, "")
	}
	return nil
}

// complete has the part on disk as it is offered, and gives it its name: in place of another file only if that may be.
// The error may be what it lacks.
func (p *part) complete(at string, o message.Offer, force bool) error {
	if err := p.Truncate(int64(o.Size)); err != nil {
		return err
	}
	var lacks lacks
	if err := p.dress(o, &lacks); err != nil {
		return err
	}
	if !renamesOpen {
		if err := p.Close(); err != nil {
			return err
		}
	}
	if err := p.name(at, force); err != nil {
		return err
	}
	p.done = true
	return lacks.err()
}

// dress gives the part its mode and time, and has it on disk. What takes away from its owner the right to go on with it
// comes last: the rest may take long, and be cut.
func (p *part) dress(o message.Offer, lacks *lacks) error {
	mode := fs.FileMode(o.Mode)
	unmoded := p.Chmod(mode | partMode)
	if err := lacks.add("its mode", unmoded); err != nil {
		return err
	}
	lacks.addTime(o)
	if err := lacks.add("its time", p.root.Chtimes(p.at, timeOf(o), timeOf(o))); err != nil {
		return err
	}
	if err := p.Sync(); err != nil || mode&partMode == partMode || unmoded != nil {
		return err
	}
	return lacks.add("its mode", p.Chmod(mode))
}

// name gives the part its name, which no file has yet unless that is replaced.
func (p *part) name(at string, force bool) error {
	if force {
		if err := mayReplace(p.root, at); err != nil { // it may have come since the part was opened
			return err
		}
		return p.root.Rename(p.at, at)
	}
	d, err := p.root.Open(path.Dir(at))
	if err != nil {
		return err
	}
	defer d.Close()
	err = renameNew(d, path.Base(p.at), d, path.Base(at))
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := p.root.Link(p.at, at); err != nil {
		return err
	}
	return p.root.Remove(p.at)
}

// drop closes the part, which stays for the next transfer to go on with if there is anything in it.
func (p *part) drop() {
	if info, err := p.Stat(); err == nil && info.Size() == 0 && !p.done {
		_ = p.root.Remove(p.at)
	}
	_ = p.Close()
}
