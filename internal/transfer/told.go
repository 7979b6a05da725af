package transfer

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// displayName is what is in root by the name that people know it by: below the directory that is served, or as they
// have named it here.
func (s *sink) displayName(at string) string {
	return filepath.Join(s.base, filepath.FromSlash(at))
}

// targetPath is where a path goes to, by that name.
func (s *sink) targetPath(p string) string {
	at, err := s.resolve(p)
	if err != nil {
		return p
	}
	return s.displayName(at)
}

// origin is what was not sent: for a client by its name at the server, and for a server, as all else, by where it would
// have gone to.
func (s *sink) origin(p string) string {
	switch {
	case s.only != "":
		return below(s.from, p)
	case p == "" || path.Clean("/"+p) != "/"+p: // it may be anything
		return p
	}
	return s.targetPath(p)
}

// below is a path of what was asked for, in the directory that is served.
func below(from, p string) string {
	if from != "" {
		return path.Join(path.Dir(from), p)
	}
	_, rest, _ := strings.Cut(p, "/")
	return path.Join(".", rest)
}

// outcome is what has become of a path.
func (s *sink) outcome(p string, err error) *Outcome {
	a := answered(err)
	return &Outcome{s.targetPath(p), a.Code, a.Text}
}

// answer tells the sender, and by which name something is here if it is not the one that the sender has for it.
func (s *sink) answer(err error) message.Answer {
	a := answered(err)
	if s.as != "" && a.Code != message.OK && a.Code != message.Already {
		name := "its name there is " + strconv.Quote(s.as)
		if a.Text != "" {
			name = a.Text + ": " + name
		}
		a.Text = truncate(name, message.MaxText)
	}
	return a
}

// answered is answerOf, for a receiver, who lacks directories and never the file.
func answered(err error) message.Answer {
	a := answerOf(err)
	if a.Code == message.Missing {
		a.Code = message.Failed
	}
	return a
}
