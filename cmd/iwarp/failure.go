package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// A failure is what a command has failed with. Its text begins with the command's name, which the errors of the
// command's own packages have in front already.
type failure struct {
	command string
	error
}

// Unwrap returns the error as it was.
func (f *failure) Unwrap() error { return f.error }

// Error is the text.
func (f *failure) Error() string {
	if text, ok := byTarget(f.error); ok && f.command != "disk" {
		return f.command + ": " + text
	}
	if text, ok := byStranger(f.command, f.error); ok {
		return f.name() + ": " + text
	}
	if text, ok := nameless(f.error); ok {
		return f.command + ": " + text + remedy(f.command, f.error)
	}
	return f.error.Error() + remedy(f.command, f.error)
}

// name is that of the command, with the option that has failed if that is known.
func (f *failure) name() string {
	if named := (*namedError)(nil); errors.As(f.error, &named) {
		return named.name
	}
	return f.command
}

// byTarget is the text of a rejection that has the form of an NVMe target's: its bytes mean nothing to people.
func byTarget(err error) (string, bool) {
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) {
		return "", false
	}
	reject, ok := ulpdata.Recognize(rejected.PrivateData).(ulpdata.NVMeReject)
	return fmt.Sprintf("an NVMe target rejects the connection, for which there is iwarp disk (%v)", reject), ok
}

// A namedError is an error under the name of what has failed, such as an option, where package iwarp's own is not said
// once more.
type namedError struct {
	name string
	error
}

// Unwrap returns the error as it was.
func (e *namedError) Unwrap() error { return e.error }

// Error is the text.
func (e *namedError) Error() string {
	text, ok := nameless(e.error)
	if !ok {
		text = e.error.Error()
	}
	return e.name + ": " + text
}

// nameless returns the text of an error that names no command: one of packages iwarp and stream, or of the system. Of
// several together the first decides.
func nameless(err error) (string, bool) {
	if text, ok := iwarp.Brief("", err); ok {
		return text, true
	}
	//nolint:errorlint // One that is wrapped has other text in front of it.
	switch e := err.(type) {
	case *ending:
		return nameless(e.error)
	case *net.OpError, *fs.PathError, *network.DownError:
		return err.Error(), true
	case several:
		text, ok := nameless(e[0])
		return text + e[1:].text(), ok
	case interface{ Unwrap() []error }: // kong joins one with nothing
		if all := e.Unwrap(); len(all) == 1 {
			return nameless(all[0])
		}
	}
	return "", false
}

// several are errors of which the first is the cause.
type several []error

// Error has a line for each.
func (s several) Error() string { return s[0].Error() + s[1:].text() }

func (s several) text() (text string) {
	for _, err := range s {
		text += "\n" + err.Error()
	}
	return text
}

// Unwrap returns all.
func (s several) Unwrap() []error { return s }

// join returns the errors that are not nil, together.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return several(errs)
}
