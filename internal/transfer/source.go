package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A source is something to send: what has a name in a directory, and goes by another. What is below it, if it is a
// directory, is never looked for outside of it.
type source struct {
	root *os.Root
	name string
	as   string // a name alone
}

// A visitor is given what a source has, in order.
type visitor struct {
	// file sends a regular file.
	file func(f *os.File, info fs.FileInfo, path string) error
	// other offers something else, and reports whether the receiver has it.
	other func(message.Offer) (bool, error)
}

// isDir reports whether it is a directory.
func (s source) isDir() bool {
	info, err := s.root.Stat(s.name)
	return err == nil && info.IsDir()
}

// visit goes through the source.
func (s source) visit(ctx context.Context, recursive bool, v visitor) error {
	info, err := s.root.Stat(s.name)
	switch {
	case err != nil:
		return v.reportMissed(s.as, reasonOf(err))
	case info.IsDir() && !recursive:
		return v.reportMissed(s.as, "a directory: -r copies it with all that is in it")
	case !info.IsDir():
		return v.regular(s.root, s.name, s.as)
	}
	below, err := s.root.OpenRoot(s.name)
	if err != nil {
		return v.reportMissed(s.as, reasonOf(err))
	}
	defer below.Close()
	return v.directory(ctx, below, ".", s.as)
}

// reportMissed tells of something that is not sent.
func (v visitor) reportMissed(as, why string) error {
	_, err := v.other(message.Offer{Kind: message.Missed, Path: as, Detail: truncate(why, message.MaxText)})
	return err
}

// toUTF8 is a name, which may be anything, as the other end can be told it: messages are in UTF-8. Whoever tells people
// of it quotes it.
func toUTF8(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if cut := len(name) - message.MaxPath; cut > 0 { // its end says more
		name = "... " + strings.ToValidUTF8(name[cut+4:], "")
	}
	return name
}

// truncate cuts a text to so many bytes.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-4], "") + " ..."
}

// regular sends a file, which is to be a regular one: also when it is open, as a pipe of another process may take its
// place at any time. A pipe that is one before is not opened: who writes to it would take us for its reader, and lose
// what is written.
func (v visitor) regular(root *os.Root, name, as string) error {
	if err := message.CheckPath(as); err != nil {
		return v.reportMissed(as, err.Error())
	}
	if info, err := root.Stat(name); err == nil && !info.Mode().IsRegular() {
		return v.reportMissed(as, "not a regular file, but "+kindOf(info.Mode()))
	}
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return v.reportMissed(as, reasonOf(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return v.reportMissed(as, reasonOf(err))
	case !info.Mode().IsRegular():
		return v.reportMissed(as, "not a regular file, but "+kindOf(info.Mode()))
	}
	return v.file(f, info, as)
}

// kindOf names a kind of special file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// directory offers one, and sends what is in it.
func (v visitor) directory(ctx context.Context, root *os.Root, name, as string) error {
	if err := message.CheckPath(as); err != nil {
		return v.reportMissed(as, err.Error())
	}
	d, err := root.Open(name)
	if err != nil {
		return v.reportMissed(as, reasonOf(err))
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return v.reportMissed(as, reasonOf(err))
	}
	if isUnfinished(root, name) {
		return v.reportMissed(as, "a copy is just making it, or was cut, and --resume goes on with that: "+
			unfinished+" in it says so")
	}
	if made, err := v.other(described(message.Directory, info, as)); err != nil || !made {
		return err
	}
	if err := v.entries(ctx, root, d, name, as); err != nil {
		return err
	}
	_, err = v.other(described(message.Leave, info, as))
	return err
}

// described is an offer with the mode and time of what is offered.
func described(kind message.Kind, info fs.FileInfo, as string) message.Offer {
	t := info.ModTime()
	return message.Offer{Kind: kind, Mode: uint32(info.Mode().Perm()), Seconds: t.Unix(),
		Nanoseconds: uint32(t.Nanosecond()), Path: as}
}

// batch is how many entries of a directory are in memory at a time.
const batch = 64

// entries sends what is in a directory, and symbolic links last: what they go through is there then.
func (v visitor) entries(ctx context.Context, root *os.Root, d *os.File, name, as string) error {
	links := 0
	err := v.each(ctx, d, as, func(e fs.DirEntry) error {
		if isLink(e) {
			links++
			return nil
		}
		return v.entry(ctx, root, e, path.Join(name, e.Name()), as+"/"+e.Name())
	})
	if err != nil || links == 0 {
		return err
	}
	again, err := root.Open(name)
	if err != nil {
		return v.reportMissed(as, "symbolic links in it: "+reasonOf(err))
	}
	defer again.Close()
	return v.each(ctx, again, as, func(e fs.DirEntry) error {
		if !isLink(e) {
			return nil
		}
		return v.link(root, path.Join(name, e.Name()), as+"/"+e.Name())
	})
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

// each goes through what is in a directory.
func (v visitor) each(ctx context.Context, d *os.File, as string, do func(fs.DirEntry) error) error {
	for {
		some, err := d.ReadDir(batch)
		for _, e := range some {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := do(e); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return v.reportMissed(as, "the rest of it: "+reasonOf(err))
		}
	}
}

func (v visitor) entry(ctx context.Context, root *os.Root, e fs.DirEntry, name, as string) error {
	switch kind := e.Type(); {
	case kind.IsRegular():
		return v.regular(root, name, as)
	case kind.IsDir():
		return v.directory(ctx, root, name, as)
	default:
		return v.reportMissed(as, "not a regular file, but "+kindOf(kind))
	}
}

// link offers a symbolic link, which is never followed.
func (v visitor) link(root *os.Root, name, as string) error {
	target, err := root.Readlink(name)
	if err != nil {
		return v.reportMissed(as, reasonOf(err))
	}
	if err := message.CheckPath(as); err != nil {
		return v.reportMissed(as, err.Error())
	}
	if err := message.CheckLink(as, target); err != nil {
		return v.reportMissed(as, err.Error())
	}
	_, err = v.other(message.Offer{Kind: message.Link, Path: as, Detail: target})
	return err
}
