package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"os"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A receiver has what is received.
type receiver struct {
	*link
	teller
	sink sink
}

// receiveAll takes what is offered, until there is no more.
func (r *receiver) receiveAll(ctx context.Context) error {
	for {
		m, err := r.receive(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case message.Offer:
			err = r.offered(ctx, m)
		case message.End:
			return r.done(ctx)
		default:
			err = unexpected(m, "an Offer")
		}
		if err != nil {
			return err
		}
	}
}

// done has the names on disk, and answers the End.
func (r *receiver) done(ctx context.Context) error {
	a := answerOf(r.sink.sync(r.sink.dir))
	if err := r.send(ctx, a); err != nil || a.Code == message.OK {
		return err
	}
	return &Outcome{r.sink.displayName(r.sink.dir), a.Code, a.Text}
}

// offered takes what is offered, if it may be.
func (r *receiver) offered(ctx context.Context, o message.Offer) error {
	var err error
	switch o.Kind {
	case message.File:
		return r.file(ctx, o)
	case message.Missed:
		r.ended(&Outcome{r.sink.origin(o.Path), message.NotRegular, o.Detail})
	default:
		if err = r.sink.make(o); err != nil {
			r.made(r.sink.outcome(o.Path, err))
		}
	}
	return r.send(ctx, r.sink.answer(err))
}

// file receives one, and says what has become of it.
func (r *receiver) file(ctx context.Context, o message.Offer) error {
	r.begun(r.sink.targetPath(o.Path), int64(o.Size))
	v := &receiving{receiver: r, o: o, size: int64(o.Size), blocks: sha256.New()}
	err := v.run(ctx)
	var fatal *brokenError
	if errors.As(err, &fatal) {
		return fatal.err
	}
	r.ended(r.sink.copied.note(r.sink.name(v.at), r.sink.outcome(o.Path, err)))
	return r.send(ctx, r.sink.answer(err))
}

// A brokenError ends the connection, and not just a file.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }

// broken returns one, or nil.
func broken(err error) error {
	if err == nil {
		return nil
	}
	return &brokenError{err}
}

// A receiving is a file that is being received.
type receiving struct {
	*receiver
	o    message.Offer
	at   string
	size int64

	old    *os.File // what has the name already, to be compared; nil: nothing
	part   *part    // nil: nothing is written, or nothing yet
	blocks hash.Hash

	granted []granted // that were not answered
	next    int64     // where the next grant begins
	settled int64     // up to here grants were answered
	failed  error     // no more is granted
	over    bool      // the sender knows that, and so sends no Done
}

// granted is a block that was granted.
type granted struct {
	message.Grant
	b   *block // nil: no memory was
	old bool   // the digest is of what has the name already
}

// run receives the file.
func (v *receiving) run(ctx context.Context) (err error) {
	if v.at, err = v.sink.vacant(v.o.Path); err != nil {
		return err
	}
	if err := v.open(); err != nil {
		return err
	}
	defer v.close()
	if err := v.send(ctx, message.Answer{}); err != nil {
		return broken(err)
	}
	for v.settled < v.next || v.failed == nil && v.settled < v.size {
		if err := v.grants(ctx); err != nil {
			return broken(err)
		}
		if err := v.completeGrant(ctx); err != nil {
			return err
		}
	}
	if v.over || v.failed != nil && v.next < v.size {
		return v.failed
	}
	return v.finish(ctx)
}

// open sees what has the name already, and opens the part unless there is only something to compare.
func (v *receiving) open() error {
	info, err := v.sink.root.Lstat(v.at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return special(info)
	case v.sink.resume && info.Mode().IsRegular() && (!v.sink.force || v.probablySame(info)):
		return v.compare(info)
	default:
		if err := mayReplace(v.sink.root, v.at); err != nil {
			return err
		}
		if !v.sink.force {
			return fail(message.Exists, "")
		}
	}
	v.part, err = v.sink.openPart(v.at)
	return err
}

// close leaves what is there.
func (v *receiving) close() {
	v.closeOld()
	if v.part != nil {
		v.part.drop()
	}
}

// grants grants as many blocks as may be under way.
func (v *receiving) grants(ctx context.Context) error {
	for len(v.granted) < v.window() && v.next < v.size && v.failed == nil {
		g := granted{Grant: message.Grant{Offset: uint64(v.next), Length: uint32(min(message.MaxBlock, v.size-v.next))}}
		n := int(g.Length)
		b, _, err := v.acquireBlock(ctx, blockSize(v.size), iwarp.RemoteWrite)
		if errors.Is(err, iwarp.ErrLimit) && len(v.granted) > 0 {
			return nil // with those it goes on
		}
		if err != nil {
			return err
		}
		g.Digest, g.old, g.Have = v.has(b.mr.Bytes()[:n], v.next)
		if !v.writes() {
			b.busy = false
			g.Have = true // of a file that is shorter by now, the digest is that of nothing
		} else {
			to := b.mr.Remote(0)
			g.b, g.Place, g.STag, g.TO = b, true, to.STag, to.TO
		}
		if err := v.send(ctx, g.Grant); err != nil {
			return err
		}
		v.granted, v.next = append(v.granted, g), v.next+int64(n)
	}
	return nil
}
