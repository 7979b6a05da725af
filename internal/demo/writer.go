package demo

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/procstat"
)

// depth is how many Writes of [Writer.Count] are under way, and batch how many are posted together.
const (
	depth = 1024
	batch = 64
)

// A Writer is connected to an owner, and reaches its memory.
type Writer struct {
	qp     *iwarp.QP
	memory iwarp.Region // the owner's
	local  *iwarp.MR    // what is written from, and read into
}

// Dial connects to the owner at addr.
func Dial(ctx context.Context, d iwarp.Dialer, addr string) (*Writer, error) {
	d.QP.SendDepth = depth
	d.MPA.ClientServer = true // no Write to indicate readiness: the owner would count it
	qp, err := d.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	w := &Writer{qp: qp}
	if err := w.memory.UnmarshalBinary(qp.Negotiated().PrivateData); err != nil {
		return nil, errors.Join(err, qp.Close())
	}
	if w.local, err = qp.PD().Register(make([]byte, Size), iwarp.LocalWrite); err != nil {
		return nil, errors.Join(err, qp.Close())
	}
	return w, nil
}

// Close ends the connection.
func (w *Writer) Close() error { return w.qp.Close() }

// Write writes a text to the begin of the owner's memory.
func (w *Writer) Write(ctx context.Context, text string) error {
	n, err := w.local.WriteAt([]byte(text), 0)
	if err != nil {
		return err
	}
	_, err = w.qp.Write(ctx, w.local.Slice(0, n), w.memory.Remote)
	return err
}

// Read reads n bytes from the begin of the owner's memory. Whatever was written before is there by then.
func (w *Writer) Read(ctx context.Context, n int) (string, error) {
	if _, err := w.qp.Read(ctx, w.local.Slice(0, n), w.memory.Remote); err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err := w.local.ReadAt(text, 0)
	return string(text), err
}

// A Cost is what many Writes took.
type Cost struct {
	Took time.Duration // until the last one was in the owner's memory
	CPU  time.Duration // of this process
}

// Count writes the numbers from 1 to n over each other, each by a Write.
func (w *Writer) Count(ctx context.Context, n int) (Cost, error) {
	cpu, began := procstat.CPUTime(), time.Now()
	err := w.count(ctx, n)
	return Cost{time.Since(began), procstat.CPUTime() - cpu}, err
}

func (w *Writer) count(ctx context.Context, n int) error {
	for posted, done := 0, 0; done < n; {
		if more := min(batch, n-posted); more > 0 && posted+more-done <= depth {
			if err := w.post(posted+1, more); err != nil {
				return err
			}
			posted += more
			continue
		}
		wc, err := w.qp.SendCQ().Next(ctx)
		if err = errors.Join(err, wc.Err()); err != nil {
			return err
		}
		done = int(wc.ID)
	}
	_, err := w.Read(ctx, Size) // which overtakes no Write
	return err
}

// post posts Writes of so many numbers. The last one completes with its number.
func (w *Writer) post(first, many int) error {
	var wrs [batch]iwarp.SendWR
	for i := range wrs[:many] {
		wrs[i] = iwarp.SendWR{Op: iwarp.OpWrite, Inline: number(first + i),
			Remote: w.memory.Remote, Unsignaled: i < many-1, ID: uint64(first + i)}
	}
	_, err := w.qp.PostSends(wrs[:many])
	return err
}

// number is what the owner's memory has for a number: its digits, and nothing behind them.
func number(n int) []byte {
	return strconv.AppendInt(make([]byte, 0, Size), int64(n), 10)[:Size]
}

// errAccepted is that of an owner that does not guard its memory.
var errAccepted = errors.New("a Write beyond the memory was not refused")

// TooFar writes a byte behind the owner's memory. It returns the Terminate by which the owner refuses that.
func (w *Writer) TooFar(ctx context.Context) (*iwarp.TerminateError, error) {
	// The Write may be on its way before the refusal comes, so that only the connection has the error.
	_, _ = w.qp.Write(ctx, w.local.Slice(0, 1), w.memory.Remote.Add(Size))
	select {
	case <-w.qp.Done():
	case <-ctx.Done():
		return nil, errors.Join(errAccepted, ctx.Err())
	}
	var refused *iwarp.TerminateError
	if !errors.As(w.qp.Err(), &refused) || !refused.Remote {
		return nil, errors.Join(errAccepted, w.qp.Err())
	}
	return refused, nil
}
