package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/transfer/message"
	"github.com/goiwarp/iwarp/mpa"
)

// A Client copies to and from a server.
type Client struct {
	// Dial connects to the server as the Dialer says, which has what a transfer needs.
	Dial func(context.Context, *iwarp.Dialer) (*iwarp.QP, error)
	// Force replaces files that are there, and begins anew what was cut.
	Force bool
	// Resume goes on with what was cut, and leaves files that are there and the same.
	Resume bool
	// Recursive copies directories with all that is in them.
	Recursive bool
	// Rate bounds the bytes of files that go over the network in a second; 0: nothing does.
	Rate uint64
	// Silence is how long the server may do nothing; if zero, DefaultSilence.
	Silence time.Duration
	// Watch, if it is set, is told what happens.
	Watch func(Event)
}

// Put copies files and directories of this host to a path below the server's directory, which is "" or one that
// message.CheckPath takes: into it, if it is a directory. With several it has to be one, and for a file if a slash
// follows it. What goes wrong with one of them leaves the others: then the error is an *IncompleteError.
func (c *Client) Put(ctx context.Context, names []string, to string) (sum Summary, err error) {
	t := teller{watch: c.Watch}
	sources, err := t.sourcesOf(names)
	if err != nil {
		return t.sum, err
	}
	defer closeAll(sources)
	to, slash := strings.CutSuffix(to, "/")
	into := len(names) > 1 || slash && !(c.Recursive && sources[0].isDir())
	l, err := c.connect(ctx, message.Begin{Put: true, Path: to, Into: into})
	if err != nil {
		return t.sum, err
	}
	s := &sender{link: l, teller: t, pace: newPace(c.Rate), copied: newCopied(names)}
	for _, src := range sources {
		if err == nil {
			err = s.sendAll(ctx, src, c.Recursive)
		}
	}
	if err == nil {
		err = s.sendEnd(ctx, to)
	}
	return s.sum, c.over(l, s.sum, err)
}

// sourcesOf opens the directories of what is named. A name may be a symbolic link, whose own name the copy has. What
// cannot be opened is left, as long as there is something else.
func (t *teller) sourcesOf(names []string) (all []source, err error) {
	for _, name := range names {
		src, err := sourceOf(name)
		switch {
		case err == nil:
			all = append(all, src)
		case len(names) == 1:
			return nil, err
		default:
			t.ended(missedBy(name, err))
		}
	}
	if len(all) == 0 {
		return nil, t.sum.Err()
	}
	return all, nil
}

// missedBy is what has become of a name that cannot be opened.
func missedBy(name string, err error) *Outcome {
	if o, ok := errors.AsType[*Outcome](err); ok {
		return o
	}
	return &Outcome{name, message.NotRegular, reasonOf(err)}
}

func sourceOf(name string) (src source, err error) {
	at, err := filepath.Abs(name)
	if err != nil {
		return src, err
	}
	src.as = filepath.Base(at)
	if err := message.CheckPath(src.as); err != nil {
		return src, &Outcome{name, message.NotRegular, err.Error()}
	}
	if at, err = filepath.EvalSymlinks(at); err != nil {
		return src, err
	}
	src.name = filepath.Base(at)
	src.root, err = os.OpenRoot(filepath.Dir(at))
	return src, err
}

func closeAll(sources []source) {
	for _, s := range sources {
		_ = s.root.Close()
	}
}

// Get copies paths below the server's directory, which is "", to this host: into a directory, or to where there is
// nothing yet. With several it has to be a directory, and each has a connection. What goes wrong with one file leaves
// the others: then the error is an *IncompleteError.
func (c *Client) Get(ctx context.Context, names []string, to string) (sum Summary, err error) {
	if info, err := os.Stat(to); len(names) > 1 && (err != nil || !info.IsDir()) {
		return sum, fmt.Errorf("%q is not a directory: several files need one", to)
	}
	had := newCopied(names)
	for _, name := range names {
		var left *IncompleteError
		one, err := c.get(ctx, name, to, had)
		sum.Add(one)
		if err != nil && !errors.As(err, &left) {
			return sum, err
		}
	}
	return sum, sum.Err()
}

// get copies one path.
func (c *Client) get(ctx context.Context, from, to string, had copied) (sum Summary, err error) {
	in, err := c.sinkOf(from, to)
	if err != nil {
		return sum, err
	}
	defer in.root.Close()
	in.copied = had
	l, err := c.connect(ctx, message.Begin{Path: from, Rate: c.Rate})
	if err != nil {
		return sum, err
	}
	r := &receiver{link: l, teller: teller{watch: c.Watch}, sink: in}
	err = r.receiveAll(ctx)
	return r.sum, c.over(l, r.sum, err)
}

// sinkOf is where on this host files go. The server may send what it was asked for, and nothing else.
func (c *Client) sinkOf(from, to string) (in sink, err error) {
	in = sink{dir: ".", from: from, base: filepath.Dir(to), only: everything, links: true, dirs: c.Recursive,
		force: c.Force, resume: c.Resume}
	if from != "" {
		in.only = path.Base(from)
	}
	at, err := filepath.Abs(to)
	if err != nil {
		return in, err
	}
	info, err := os.Stat(at)
	into := err == nil && info.IsDir()
	if into {
		if at, err = filepath.EvalSymlinks(at); err != nil {
			return in, err
		}
	}
	if into && from != "" {
		in.base = to
		in.root, err = os.OpenRoot(at)
		return in, err
	}
	if !into && strings.HasSuffix(to, string(filepath.Separator)) {
		return in, fmt.Errorf("%q is not a directory", to)
	}
	if into {
		in.base = filepath.Dir(at)
	}
	in.as, in.whole = filepath.Base(at), from == ""
	in.root, err = os.OpenRoot(filepath.Dir(at))
	return in, err
}

// connect connects to the server, and tells it what is wanted.
func (c *Client) connect(ctx context.Context, b message.Begin) (*link, error) {
	b.Force, b.Resume, b.Recursive = c.Force, c.Resume, c.Recursive
	l := newLink(c.Silence)
	_, err := c.Dial(ctx, &iwarp.Dialer{QP: l.config(), NoReads: true, MPA: mpa.Offer{PrivateData: greeting()},
		Prepare: l.prepare, Verify: verify})
	if err != nil {
		l.release()
		return nil, connectError(err)
	}
	a, err := (&sender{link: l}).ask(ctx, b)
	if err == nil && a.Code != message.OK {
		_ = l.close(nil)
		return nil, &Outcome{cmp.Or(b.Path, "."), a.Code, a.Text}
	}
	if err != nil {
		return nil, l.close(err)
	}
	return l, nil
}

// verify wants a server of the same kind.
func verify(n mpa.Negotiated) error {
	if !bytes.Equal(n.PrivateData, greeting()) {
		return errors.New("the other end serves no files")
	}
	return nil
}

// connectError says what a server has said that turns the client down.
func connectError(err error) error {
	var rejected *iwarp.RejectError
	if errors.As(err, &rejected) && len(rejected.PrivateData) > 0 {
		return &refusedError{rejected.PrivateData, err}
	}
	return err
}

// A refusedError is a server's refusal, in its own words.
type refusedError struct {
	said []byte
	error
}

// Error says what the server does.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the other end rejected the connection, and says %q", e.said)
}

// Unwrap returns the *iwarp.RejectError.
func (e *refusedError) Unwrap() error { return e.error }

// over ends the connection.
func (c *Client) over(l *link, sum Summary, err error) error {
	var last *Outcome
	err = l.close(err)
	switch {
	case errors.As(err, &last): // the transfer came to its end
		return err
	case errors.Is(err, iwarp.ErrPeerClosed):
		return fmt.Errorf("cut after %d files, and --resume goes on: the server has left, as it does when it is shut down, or after its --idle without anything that moves: %w", sum.Files, err)
	case err != nil:
		return fmt.Errorf("cut after %d files, and --resume goes on: %w", sum.Files, err)
	}
	return sum.Err()
}
