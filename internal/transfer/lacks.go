package transfer

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// lacks say what a file or a directory could not be given. It is there all the same: that is a success, with a word to
// who copies.
type lacks []string

// add notes what this file system does not do, or does not allow. Any other error is returned.
func (l *lacks) add(what string, err error) error {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	*l = append(*l, what+" is not that of the source: "+reasonOf(err))
	return nil
}

// err is a failure of no consequence, or nil.
func (l lacks) err() error {
	if len(l) == 0 {
		return nil
	}
	return fail(message.OK, truncate(strings.Join(l, "; "), message.MaxText))
}

// The first and the last time that a system is told of.
var firstTime, lastTime = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// timeOf is when what is offered was changed last, or the nearest time to that that it can be given.
func timeOf(o message.Offer) time.Time {
	t := time.Unix(o.Seconds, int64(o.Nanoseconds))
	switch {
	case t.Before(firstTime):
		return firstTime
	case t.After(lastTime):
		return lastTime
	}
	return t
}

// addTime notes that a time was not the one that is offered.
func (l *lacks) addTime(o message.Offer) {
	if t := timeOf(o); t.Unix() != o.Seconds {
		*l = append(*l, "its time is "+t.UTC().Format(time.DateOnly)+", which is as near as can be")
	}
}
