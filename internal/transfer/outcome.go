package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// An Outcome is what has become of a file, a directory, or of what was asked for as a whole.
type Outcome struct {
	Path string
	Code message.Code
	Text string // says more; of what was copied, what it lacks
}

// Error says what has become of it, and what to do.
func (o *Outcome) Error() string {
	text := strconv.Quote(o.Path) + ": " + o.Code.String()
	if o.Text != "" {
		text += ": " + o.Text
	}
	return text
}

// Good reports whether the receiver has it.
func (o *Outcome) Good() bool { return o.Code == message.OK || o.Code == message.Already }

// An Event is what is told of a transfer: a Begun, Moved or *Outcome, which is its end.
type Event any

// Begun tells of a file whose bytes follow.
type Begun struct {
	Path string
	Size int64
}

// Moved tells that so many bytes more of it were sent or received, or need not be.
type Moved int

// A Summary counts.
type Summary struct {
	Files int   // that the receiver has
	There int   // of these, the ones that it had before
	Bytes int64 // of these
	Left  int   // files and others that it does not have
}

// Add adds what another transfer has done.
func (s *Summary) Add(other Summary) {
	s.Files, s.There, s.Bytes, s.Left = s.Files+other.Files, s.There+other.There,
		s.Bytes+other.Bytes, s.Left+other.Left
}

// Err is an *IncompleteError if something was left.
func (s Summary) Err() error {
	if s.Left == 0 {
		return nil
	}
	return &IncompleteError{s}
}

// An IncompleteError says that not everything was copied.
type IncompleteError struct{ Summary }

// Error says how much was not copied.
func (e *IncompleteError) Error() string {
	there := "were there already"
	if e.There == 1 {
		there = "was there already"
	}
	switch copied := e.Files - e.There; {
	case e.There == 0:
		return fmt.Sprintf("%d not copied, and %d copied", e.Left, copied)
	case copied == 0:
		return fmt.Sprintf("%d not copied, and %d %s", e.Left, e.There, there)
	default:
		return fmt.Sprintf("%d not copied, %d copied, and %d %s", e.Left, copied, e.There, there)
	}
}

// A teller counts, and tells who watches.
type teller struct {
	watch func(Event)
	sum   Summary
	size  int64 // of the present file
}

func (t *teller) report(e Event) {
	if t.watch != nil {
		t.watch(e)
	}
}

func (t *teller) begun(path string, size int64) {
	t.size = size
	t.report(Begun{path, size})
}

// ended tells of the end of a file, or of something else that was left out.
func (t *teller) ended(o *Outcome) {
	if o.Good() {
		t.sum.Files++
		if o.Code == message.Already {
			t.sum.There++
		}
		t.sum.Bytes += t.size
	} else {
		t.sum.Left++
	}
	t.size = 0
	t.report(o)
}

// made tells of something without bytes that was not made, or that lacks something. No file is counted for it.
func (t *teller) made(o *Outcome) {
	if !o.Good() {
		t.ended(o)
		return
	}
	t.report(o)
}

// codeOf is the code of a system's error.
func codeOf(err error) message.Code {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return message.Missing
	case errors.Is(err, fs.ErrPermission):
		return message.Denied
	case errors.Is(err, fs.ErrExist):
		return message.Exists
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return message.Full
	}
	return message.Failed
}

// reasonOf is what the system says, without the names of this host's directories.
func reasonOf(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	if errors.As(err, &call) {
		err = call.Err
	}
	return err.Error()
}

// answerOf is what to answer if something cannot be made; nil: it was.
func answerOf(err error) message.Answer {
	var known *failure
	switch {
	case err == nil:
		return message.Answer{}
	case errors.As(err, &known):
		return message.Answer{Code: known.code, Text: known.text}
	}
	return message.Answer{Code: codeOf(err), Text: reasonOf(err)}
}

// A failure has the code of what has gone wrong with one file.
type failure struct {
	code message.Code
	text string
}

func (f *failure) Error() string { return f.code.String() }

// fail returns a failure.
func fail(code message.Code, text string) error { return &failure{code, text} }
