package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// probablySame reports whether a file may well be what is offered.
func (v *receiving) probablySame(info fs.FileInfo) bool {
	return info.Size() == v.size && info.ModTime().Equal(timeOf(v.o))
}

// compare has the file that is there compared with what is offered. Nothing is written, unless it may be replaced and
// differs.
func (v *receiving) compare(info fs.FileInfo) (err error) {
	if info.Size() != v.size {
		return fail(message.Unlike, "")
	}
	v.old, err = v.sink.root.OpenFile(v.at, os.O_RDONLY|noWait, 0)
	return err
}

// writes reports whether blocks may be written, so that grants offer memory for them.
func (v *receiving) writes() bool { return v.part != nil || v.sink.force }

// differs has the part begun when the first block comes that what has the name already has otherwise. All blocks up to
// offset were the same there, and what their digests came to is known: so the part has them from there.
func (v *receiving) differs(offset int64, digests message.Digest) (err error) {
	if v.part != nil {
		return nil
	}
	if v.part, err = v.sink.openPart(v.at); err != nil {
		return err
	}
	buf, sums := make([]byte, message.MaxBlock), sha256.New()
	for at := int64(0); at < offset; at += message.MaxBlock {
		if _, err := v.old.ReadAt(buf, at); err != nil {
			return errOldChanged(err)
		}
		sum := sha256.Sum256(buf)
		sums.Write(sum[:])
		if _, err := v.part.WriteAt(buf, at); err != nil {
			return err
		}
	}
	if message.Digest(sums.Sum(nil)) != digests {
		return errOldChanged(nil)
	}
	return nil
}

// keep has the part have a block that is the same in what has the name already. If nothing differs so far there is
// none.
func (v *receiving) keep(g granted, w message.Wrote) error {
	if v.part == nil || !g.old {
		return nil
	}
	data := g.b.mr.Bytes()[:w.Length]
	if _, err := v.old.ReadAt(data, int64(w.Offset)); err != nil {
		return errOldChanged(err)
	}
	if sha256.Sum256(data) != w.Digest {
		return errOldChanged(nil)
	}
	_, err := v.part.WriteAt(data, int64(w.Offset))
	return err
}

// complete has the part get its name. One that goes on with what was cut, and finds by now that something else has the
// name, compares that as at the beginning.
func (v *receiving) complete() error {
	err := v.part.complete(v.at, v.o, v.sink.force)
	if !v.sink.resume || !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !v.equals(v.at) {
		return fail(message.Unlike, "")
	}
	v.part.done = true
	return errors.Join(v.part.root.Remove(v.part.at), fail(message.Already, ""))
}

// equals reports whether a file is what was received, by the digest of its digests.
func (v *receiving) equals(at string) bool {
	info, err := v.sink.root.Lstat(at)
	if err != nil || !info.Mode().IsRegular() || info.Size() != v.size {
		return false
	}
	f, err := v.sink.root.OpenFile(at, os.O_RDONLY|noWait, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	sums, buf := sha256.New(), make([]byte, blockSize(v.size))
	for left := v.size; left > 0; left -= int64(len(buf)) {
		buf = buf[:min(left, int64(len(buf)))]
		if _, err := io.ReadFull(f, buf); err != nil {
			return false
		}
		sum := sha256.Sum256(buf)
		sums.Write(sum[:])
	}
	return bytes.Equal(sums.Sum(nil), v.blocks.Sum(nil))
}

// errOldChanged is a failure of a copy amid which somebody has written to the file that it is to replace.
func errOldChanged(err error) error {
	text := "what is to be replaced changed"
	if err != nil {
		text += ": " + reasonOf(err)
	}
	return fail(message.Changed, text)
}

// closeOld closes what has the name already.
func (v *receiving) closeOld() {
	if v.old != nil {
		_ = v.old.Close()
		v.old = nil
	}
}
