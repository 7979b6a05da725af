package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"golang.org/x/time/rate"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A sender has what is sent.
type sender struct {
	*link
	teller
	pace   *rate.Limiter // nil: as fast as may be
	copied copied        // by the path that is offered
}

// newPace returns what keeps to so many bytes a second; 0: nothing.
func newPace(n uint64) *rate.Limiter {
	if n == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(n), int(min(max(n/8, 1), 256<<10)))
}

// send sends a source.
func (s *sender) sendAll(ctx context.Context, src source, recursive bool) error {
	return src.visit(ctx, recursive, visitor{
		file:  func(f *os.File, info fs.FileInfo, as string) error { return s.file(ctx, f, info, as) },
		other: func(o message.Offer) (bool, error) { return s.offerEmpty(ctx, o) },
	})
}

// sendEnd tells the receiver that there is no more to go to a path.
func (s *sender) sendEnd(ctx context.Context, to string) error {
	a, err := s.ask(ctx, message.End{})
	if err == nil && a.Code != message.OK {
		err = &Outcome{Path: to, Code: a.Code, Text: a.Text}
	}
	return err
}

// ask sends a message that has an answer.
func (s *sender) ask(ctx context.Context, m message.Message) (a message.Answer, err error) {
	s.asks = true
	defer func() { s.asks = false }()
	if err := s.send(ctx, m); err != nil {
		return a, err
	}
	got, err := s.receive(ctx)
	if err != nil {
		return a, err
	}
	a, ok := got.(message.Answer)
	if !ok {
		return a, unexpected(got, "an Answer")
	}
	return a, nil
}

// unexpected is the error of a message at the wrong time.
func unexpected(got message.Message, want string) error {
	return fmt.Errorf("transfer: the other end sent %v in place of %s", got.Type(), want)
}

// offerEmpty offers what has no bytes.
func (s *sender) offerEmpty(ctx context.Context, o message.Offer) (bool, error) {
	sent := o
	if o.Kind == message.Missed {
		sent.Path = toUTF8(o.Path)
	}
	a, err := s.ask(ctx, sent)
	switch {
	case err != nil:
		return false, err
	case o.Kind == message.Missed:
		s.ended(&Outcome{o.Path, message.NotRegular, o.Detail})
	case a != message.Answer{}:
		s.made(&Outcome{o.Path, a.Code, a.Text})
	}
	return a.Code == message.OK, nil
}

// file offers a file, and sends it.
func (s *sender) file(ctx context.Context, f *os.File, info fs.FileInfo, as string) error {
	o := described(message.File, info, as)
	o.Size = uint64(info.Size())
	if s.copied[as] {
		s.ended(&Outcome{as, message.Twice, ""})
		return nil
	}
	s.begun(as, info.Size())
	a, err := s.ask(ctx, o)
	if err == nil && a.Code == message.OK {
		a, err = (&sending{sender: s, f: f, size: info.Size(), blocks: sha256.New()}).run(ctx, info)
	}
	if err == nil {
		s.ended(s.copied.note(as, &Outcome{as, a.Code, a.Text}))
	}
	return err
}

// A sending is a file that is being sent.
type sending struct {
	*sender
	f      *os.File
	size   int64
	next   int64     // where the next grant begins
	blocks hash.Hash // of the blocks' digests
	over   bool      // the receiver is going to give up
	why    string
}

// run sends all blocks, and returns the receiver's last word.
func (s *sending) run(ctx context.Context, info fs.FileInfo) (a message.Answer, err error) {
	for s.next < s.size || s.over {
		m, err := s.receive(ctx)
		if err != nil {
			return a, err
		}
		switch m := m.(type) {
		case message.Answer:
			return s.reason(m), nil
		case message.Grant:
			if err := s.grant(ctx, m); err != nil {
				return a, err
			}
		default:
			return a, unexpected(m, "a Grant")
		}
	}
	return s.ask(ctx, message.Done{Changed: s.changed(info), Digest: message.Digest(s.blocks.Sum(nil))})
}

// reason adds what this end knows better.
func (s *sending) reason(a message.Answer) message.Answer {
	if s.why != "" {
		a.Text = s.why
	}
	return a
}

// changed reports whether the file is not the one any more that it was. One that was changed and has its size and time
// again is not noticed.
func (s *sending) changed(before fs.FileInfo) bool {
	now, err := s.f.Stat()
	return err != nil || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime())
}

// grant answers one.
func (s *sending) grant(ctx context.Context, g message.Grant) error {
	n := int64(g.Length)
	if int64(g.Offset) != s.next || n > s.size-s.next {
		return fmt.Errorf("transfer: the other end asks for %d bytes at %d of a file of %d, of which it had %d",
			n, g.Offset, s.size, s.next)
	}
	s.next += n
	b, id, err := s.acquireBlock(ctx, blockSize(s.size), 0)
	if err != nil {
		return err
	}
	w := message.Wrote{Offset: g.Offset, Length: g.Length}
	if err := s.read(b.mr.Bytes()[:n], int64(g.Offset)); err != nil {
		b.busy = false
		s.over, s.why = true, truncate(reasonOf(err), message.MaxText)
		w.State, w.Text = message.Lost, s.why
		return s.send(ctx, w)
	}
	w.Digest = sha256.Sum256(b.mr.Bytes()[:n])
	s.blocks.Write(w.Digest[:])
	s.report(Moved(n))
	if g.Have && g.Digest == w.Digest || !g.Place {
		b.busy = false
		w.State = message.Same
		if g.Digest != w.Digest {
			w.State, s.over = message.Differs, true
		}
		return s.send(ctx, w)
	}
	w.State = message.Written
	return s.write(ctx, b, id, g, w)
}

// read reads a block.
func (s *sending) read(p []byte, offset int64) error {
	_, err := s.f.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		return errors.New("it is shorter now")
	}
	return err
}

// write writes a block to the receiver's memory, and tells it.
func (s *sending) write(ctx context.Context, b *block, id uint64, g message.Grant, w message.Wrote) error {
	to, n := iwarp.Remote{STag: g.STag, TO: g.TO}, int(g.Length)
	for at := 0; at < n; {
		m, err := s.piece(ctx, n-at)
		if err != nil {
			return err
		}
		wr := iwarp.SendWR{ID: noBlock, Op: iwarp.OpWrite, SGL: []iwarp.SGE{b.mr.Slice(at, m)}, Remote: to.Add(at)}
		if at += m; at == n {
			wr.ID = id
			return s.send(ctx, w, wr)
		}
		if err := s.post(ctx, wr); err != nil {
			return err
		}
	}
	return nil
}

// piece waits until the pace allows a piece of n bytes, and returns how many it has.
func (s *sending) piece(ctx context.Context, n int) (int, error) {
	if s.pace == nil {
		return n, nil
	}
	n = min(n, s.pace.Burst())
	return n, s.pace.WaitN(ctx, n)
}

// blockSize is how many bytes the blocks of a file have, except for the last.
func blockSize(size int64) int { return int(min(max(size, minBlock), message.MaxBlock)) }

// minBlock is the least memory for a block, which the next file may need too.
const minBlock = 64 << 10
