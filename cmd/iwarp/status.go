package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/perf"
)

// The exit statuses of every subcommand.
const (
	statusFine     = iota // it has done what it should, and nothing is wrong
	statusFindings        // it has done what it should, and found something wrong
	statusUsage           // it was called in a way that it does not know
	statusFailed          // it could not do what it should
	statusStopped         // it could not go on: the peer had stopped answering
)

// exitStatuses is the same for people.
const exitStatuses = "Exit status: 0 all is fine, 1 something wrong was found, 2 a wrong option or argument, 3 it could not run, 4 the peer of probe or conform stopped answering midway. Ctrl-C exits with 0; if disk could not complete everything, with 1; during a copy (cat, cp, disk --read or --write), and if serve had to cut clients, with 3."

// An ending is an error with the exit status that it leads to.
type ending struct {
	error
	status int
}

// Unwrap returns the error.
func (e *ending) Unwrap() error { return e.error }

// findings is what to return where something wrong was found.
func findings(format string, args ...any) error {
	return &ending{fmt.Errorf(format, args...), statusFindings}
}

// stopped is what to return where the peer answered, and then answered no more.
func stopped(format string, args ...any) error {
	return &ending{fmt.Errorf(format, args...), statusStopped}
}

// usage is what to return where an option or argument is wrong.
func usage(format string, args ...any) error {
	return &ending{fmt.Errorf(format, args...), statusUsage}
}

// An interrupt is an error by which a process of our own has told that we are interrupted, before our context ends.
type interrupt struct{ error }

// Unwrap returns the error.
func (e *interrupt) Unwrap() error { return e.error }

// statusOf returns the exit status of a run that ended with err.
func statusOf(ctx context.Context, err error) int {
	var e *ending
	var told *perf.PeerError
	switch {
	case err == nil:
		return statusFine
	case errors.As(err, &e):
		return e.status
	case errors.As(err, &told) && told.Option:
		return statusUsage
	case errors.As(err, new(*kong.ParseError)), errors.As(err, new(*perf.OptionError)), errors.Is(err, rping.ErrSize),
		errors.Is(err, iwarp.ErrInvalid):
		return statusUsage
	case errors.As(err, new(*perf.CorruptionError)), errors.As(err, new(*rping.MismatchError)):
		return statusFindings
	case errors.Is(err, errRecording):
		return statusFailed
	case ctx.Err() != nil, errors.As(err, new(*interrupt)):
		return statusFine // whatever the interrupt has done to connections
	}
	return statusFailed
}

// errCut is a copy that an interrupt has ended before its end.
var errCut = errors.New("interrupted: the copy is incomplete")

// cutCopy is what a copy under a name has failed with: if that was an interrupt, a failure all the same, for those who
// go on to remove what was copied.
func cutCopy(ctx context.Context, name string, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &ending{&namedError{name, errCut}, statusFailed}
}

// cutShort is the error of a server that had to end connections: a failure, although the run was interrupted.
func cutShort(err error) error {
	if errors.As(err, new(*serve.CutError)) {
		return &ending{err, statusFailed}
	}
	return err
}
