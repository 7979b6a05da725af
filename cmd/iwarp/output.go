package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
)

// An output is a file that a run writes at its end. It is opened before the run, so that one that cannot be written is
// known by then, and gets its name when it is complete: a run that never was, or was cut, overwrites nothing.
type output struct {
	*os.File
	made     bool   // there was none
	replaced bool   // what it had is gone
	to       string // its name when it is complete; empty: it has it already
}

// openOver is openOutput for a file whose beginning shows what it is: something else is not replaced.
func openOver(command, flag, path, what string, is func(io.Reader) bool, inputs ...string) (*output, error) {
	if err := notRead(command, flag, path, inputs...); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: --%s: %w", command, flag, err)
		}
		defer f.Close()
		if !is(f) {
			return nil, usage("%s: --%s: %s exists and is not %s: name another file, or remove it", command, flag, path, what)
		}
	}
	return openOutput(command, flag, path, inputs...)
}

// isCapture reports whether a capture begins there.
func isCapture(r io.Reader) bool {
	_, err := capture.Open(r)
	return err == nil
}

// isPage reports whether a page of HTML begins there.
func isPage(r io.Reader) bool {
	head := make([]byte, len(pageHead))
	_, err := io.ReadFull(r, head)
	return err == nil && strings.EqualFold(string(head), pageHead)
}

const pageHead = "<!DOCTYPE html>"

// isStdout reports whether a path is standard output, by whatever name.
func isStdout(path string) bool {
	if path == "-" {
		return true
	}
	own, err := os.Stdout.Stat()
	other, failed := os.Stat(path)
	return err == nil && failed == nil && os.SameFile(own, other) &&
		(own.Mode()&fs.ModeDevice == 0 || term.IsTerminal(int(os.Stdout.Fd()))) // several may be written to /dev/null
}

// openOutput opens the file that a flag asks for. It returns nil if the path is empty.
// A file that the run reads is refused.
func openOutput(command, flag, path string, inputs ...string) (*output, error) {
	if path == "" {
		return nil, nil
	}
	if err := notRead(command, flag, path, inputs...); err != nil {
		return nil, err
	}
	o, err := openPart(path, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s: --%s: %w%s", command, flag, err,
			wording.If(errors.Is(err, fs.ErrNotExist), ": make the directory first", ""))
	}
	return o, nil
}

// notRead refuses to write a file that the run reads.
func notRead(command, flag, path string, inputs ...string) error {
	for _, in := range inputs {
		if sameFile(in, path) {
			return usage("%s: --%s: %s is the file that is read: name another", command, flag, path)
		}
	}
	return nil
}

// sameFile reports whether an input, which may be - for standard input, is the file of a path, and has something to lose.
func sameFile(in, path string) bool {
	stat := func() (fs.FileInfo, error) { return os.Stat(in) }
	if in == "-" {
		stat = os.Stdin.Stat
	}
	one, err := stat()
	other, failed := os.Stat(path)
	return err == nil && failed == nil && one.Mode().IsRegular() && os.SameFile(one, other)
}

// Write replaces what the file has with what is written first.
func (o *output) Write(b []byte) (int, error) {
	if err := o.replace(); err != nil {
		return 0, err
	}
	return o.File.Write(b)
}

// replace removes what the file has, once.
func (o *output) replace() error {
	if o.replaced {
		return nil
	}
	o.replaced = true
	if info, _ := o.Stat(); info == nil || !info.Mode().IsRegular() { // others cannot be cut short
		return nil
	}
	return o.Truncate(0)
}

// finish closes the file after a run that has ended with err. If nothing was written then, the file is as it was before,
// unless that is all there was. What a run has written that failed stays, and the error says where.
func (o *output) finish(err error) error {
	if err != nil && !o.replaced {
		o.leave()
		return nil
	}
	if err != nil {
		return join(o.Close(), o.cut())
	}
	return join(o.replace(), o.complete())
}

// write replaces what the file has, and closes it. If that fails, no part of it is left. It does nothing to a nil one.
func (o *output) write(write func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	if err := join(o.replace(), write(o)); err != nil {
		o.remove()
		return err
	}
	return o.complete()
}

// leave closes the file as it was before the run.
func (o *output) leave() {
	if o == nil {
		return
	}
	_ = o.Close()
	if o.made {
		_ = os.Remove(o.Name())
	}
}
