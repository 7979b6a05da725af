package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/goiwarp/iwarp/internal/capsule"
)

const (
	// retries is how often a command is sent again: one whose status does not say that this is of no use, or whose
	// connection was lost.
	retries = 5
	// atOnce is how many commands of one call are under way at the same time.
	atOnce = 16
	// maxBlocks bounds the blocks of a Write Zeroes.
	maxBlocks = 1 << 16
)

// ReadAt is Read without a context: Dialer.Timeout and Dialer.Patience bound it.
func (n *Namespace) ReadAt(p []byte, off int64) (int, error) {
	return n.Read(context.Background(), p, off)
}

// WriteAt is Write without a context.
func (n *Namespace) WriteAt(p []byte, off int64) (int, error) {
	return n.Write(context.Background(), p, off)
}

// Read fills p with what is at any offset; blocks that p has a part of are read as a whole. It returns how many bytes
// of p, from its beginning, are there. The error is io.EOF if the namespace ends within p. p is the caller's again when
// Read has returned.
func (n *Namespace) Read(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, n.failed("Read", off, ErrRange)
	}
	if off >= n.Size() {
		return 0, io.EOF
	}
	var end error
	if rest := n.Size() - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	done, err := n.read(ctx, p, off)
	if err == nil {
		err = end
	}
	return done, err
}

// read reads what lies within the namespace. What does not begin and end with blocks goes through memory of its own.
func (n *Namespace) read(ctx context.Context, p []byte, off int64) (int, error) {
	block := int64(n.BlockSize())
	if off%block == 0 && int64(len(p))%block == 0 {
		return n.transfer(ctx, capsule.OpRead, p, off)
	}
	first := off / block * block
	whole := make([]byte, (off+int64(len(p))+block-1)/block*block-first)
	done, err := n.transfer(ctx, capsule.OpRead, whole, first)
	return copy(p, whole[min(off-first, int64(done)):done]), err
}

// Write writes p at an offset. It returns how many bytes of p, from its beginning, were written. They are durable
// after a Flush. If ctx ends first, what is under way may still be written, as p was then; p itself is the caller's
// again.
func (n *Namespace) Write(ctx context.Context, p []byte, off int64) (int, error) {
	if err := n.check("Write", off, int64(len(p))); err != nil {
		return 0, err
	}
	return n.transfer(ctx, capsule.OpWrite, p, off)
}

// check holds that something to be changed is whole blocks of the namespace.
func (n *Namespace) check(what string, off, length int64) error {
	block := int64(n.BlockSize())
	switch {
	case off < 0 || length < 0 || off%block != 0 || length%block != 0:
		return n.failed(what, off, ErrUnaligned)
	case off > n.Size() || length > n.Size()-off:
		return n.failed(what, off, ErrRange)
	}
	return nil
}

// Flush returns when all that had been written before is durable, unless the target's machine has lost it since: see
// the package's comment.
func (n *Namespace) Flush(ctx context.Context) error {
	return n.failed("Flush", 0, n.do(ctx, &task{cmd: capsule.NewCommand(capsule.OpFlush, n.id)}))
}

// Discard tells the controller that what is there is not needed any more: it may read as anything until it is written.
// The error wraps errors.ErrUnsupported if the controller cannot.
func (n *Namespace) Discard(ctx context.Context, off, length int64) error {
	return n.sweep(ctx, "Discard", capsule.HasDatasets, off, length, func(lba uint64, blocks uint32) *task {
		d := capsule.DatasetManagement{NSID: n.id, Ranges: 1, Deallocate: true}
		return &task{cmd: d.Command(), data: capsule.Range{Blocks: blocks, LBA: lba}.Append(nil)}
	})
}

// WriteZeroes makes what is there read as zeroes. The error wraps errors.ErrUnsupported if the controller cannot do
// that without being sent the zeroes.
func (n *Namespace) WriteZeroes(ctx context.Context, off, length int64) error {
	return n.sweep(ctx, "Write Zeroes", capsule.HasWriteZeroes, off, length, func(lba uint64, blocks uint32) *task {
		return &task{cmd: capsule.IO{NSID: n.id, LBA: lba, Blocks: blocks}.Command(capsule.OpWriteZeroes)}
	})
}

// sweep does something to blocks that takes no data.
func (n *Namespace) sweep(ctx context.Context, what string, takes uint16, off, length int64,
	part func(lba uint64, blocks uint32) *task) error {
	if err := n.check(what, off, length); err != nil {
		return err
	}
	s, err := n.c.session(ctx)
	if err == nil && s.identity.Optional&takes == 0 {
		err = fmt.Errorf("the controller has no such command: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return n.failed(what, off, err)
	}
	for lba, blocks := uint64(off)>>n.page.BlockShift, uint64(length)>>n.page.BlockShift; blocks > 0; {
		count := min(blocks, maxBlocks)
		if err := n.do(ctx, part(lba, uint32(count))); err != nil {
			return n.failed(what, int64(lba<<n.page.BlockShift), err)
		}
		lba, blocks = lba+count, blocks-count
	}
	return nil
}

// transfer reads or writes whole blocks, in pieces that the controller takes, several at once. It returns how many
// bytes are done from the beginning on.
func (n *Namespace) transfer(ctx context.Context, op capsule.Opcode, p []byte, off int64) (int, error) {
	s, err := n.c.session(ctx)
	if err != nil {
		return 0, n.failed(op.Name(false), off, err)
	}
	piece := s.most(n.BlockSize())
	if len(p) <= piece {
		if err := n.piece(ctx, op, p, off); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return n.pieces(ctx, op, p, off, piece)
}

// pieces has several pieces under way at a time, and begins none after one that has failed.
func (n *Namespace) pieces(ctx context.Context, op capsule.Opcode, p []byte, off int64, length int) (int, error) {
	errs := make([]error, (len(p)+length-1)/length)
	next := make(chan int, len(errs))
	for i := range errs {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	var failed sync.Once
	stop := make(chan struct{})
	for range min(atOnce, len(errs)) {
		workers.Go(func() {
			for i := range next {
				select {
				case <-stop:
					errs[i] = errStopped
					continue
				default:
				}
				at := i * length
				if errs[i] = n.piece(ctx, op, p[at:min(at+length, len(p))], off+int64(at)); errs[i] != nil {
					failed.Do(func() { close(stop) })
				}
			}
		})
	}
	workers.Wait()
	return firstFailed(errs, length, len(p))
}

// errStopped is of pieces that were not begun. One before them has failed.
var errStopped = errors.New("nvme: not begun")

// firstFailed returns how many bytes are in front of the first piece that failed, and why that did.
func firstFailed(errs []error, length, all int) (int, error) {
	for i, err := range errs {
		if err != nil {
			return i * length, err
		}
	}
	return all, nil
}

// errTooLong is of a piece that was right for the controller before, and is too long for the one that has come back.
var errTooLong = errors.New("nvme: more than the controller takes")

// most is how many bytes a command moves, which is a block at least.
func (s *session) most(block int) int { return max(s.maxData, block) }

// piece reads or writes with one command, or with two of half its length where the controller has come to take less.
func (n *Namespace) piece(ctx context.Context, op capsule.Opcode, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	i := capsule.IO{NSID: n.id, LBA: uint64(off) >> n.page.BlockShift, Blocks: uint32(len(p) >> n.page.BlockShift)}
	err := n.do(ctx, &task{cmd: i.Command(op), data: p, receives: op == capsule.OpRead})
	if errors.Is(err, errTooLong) {
		half := int(i.Blocks/2) << n.page.BlockShift
		if err := n.piece(ctx, op, p[:half], off); err != nil {
			return err
		}
		return n.piece(ctx, op, p[half:], off+int64(half))
	}
	return n.failed(op.Name(false), off, err)
}

// do carries a command out, again if the controller was lost or the status allows that.
func (n *Namespace) do(ctx context.Context, t *task) error {
	for turn := 0; ; turn++ {
		s, err := n.c.session(ctx)
		if err == nil && n.changed.Load() { // which is known before a new session is
			err = ErrChanged
		}
		if err != nil {
			return err
		}
		if len(t.data) > s.most(n.BlockSize()) {
			return errTooLong
		}
		q, err := s.pick()
		if err != nil {
			return err
		}
		c, err := q.do(ctx, t)
		switch {
		case errors.Is(err, errDead) && turn < retries:
		case errors.Is(err, errDead):
			return s.err
		case err != nil:
			return err
		case c.Status.Code() == capsule.Success:
			return nil
		case !c.Status.Retryable() || turn >= retries:
			return &StatusError{t.cmd.Name(false), c.Status, c.Result}
		}
	}
}

// failed says what has failed, and where. nil stays nil.
func (n *Namespace) failed(what string, off int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("nvme: %s at %d of namespace %d: %w", what, off, n.id, err)
}
