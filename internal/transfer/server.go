package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/transfer/message"
	"github.com/goiwarp/iwarp/mpa"
)

// A ServerConfig configures a Server.
type ServerConfig struct {
	// Dir is the directory that is served. Nothing outside of it is ever read or written.
	Dir string
	// Writable lets clients put files there.
	Writable bool
	// Silence is how long a client may do nothing, DefaultSilence at most; that, if zero.
	Silence time.Duration
	// Memory is how many bytes may be registered, with those of others; 0: any number. The clients of one address have
	// half of them at most.
	Memory int64
	// Logger, if there is one, is told of each file.
	Logger *slog.Logger
}

// A Server serves a directory. Each client has a block of memory, 1 MiB, from its startup on, and takes up to 8 MiB.
type Server struct {
	cfg      ServerConfig
	root     *os.Root
	rejecter admission.Rejecter
	shares   *shares
}

// NewServer opens the directory.
func NewServer(cfg ServerConfig) (*Server, error) {
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, root: root, shares: newShares(cfg.Memory)}, nil
}

// Close closes the directory.
func (s *Server) Close() error { return s.root.Close() }

// greeting is the private data of a transfer's Request and Reply.
func greeting() []byte { return append([]byte(message.Magic), message.Version) }

// Knows reports whether a peer asks for a transfer.
func Knows(req *iwarp.Request) bool {
	return bytes.HasPrefix(req.PrivateData(), []byte(message.Magic))
}

// Serve serves the client of one request until it has gone. One of another version is rejected, with the reason;
// the error is a *admission.RejectedError then.
func (s *Server) Serve(ctx context.Context, req *iwarp.Request) error {
	if !bytes.Equal(req.PrivateData(), greeting()) {
		why := fmt.Errorf("this server has version %d of %s", message.Version, message.Magic)
		return s.rejecter.RejectBecause(req, []byte(why.Error()), why)
	}
	l := newLink(min(s.cfg.Silence, DefaultSilence)) // it has memory of ours
	l.share = s.shares.share(req.RemoteAddr())
	_, err := req.Accept(ctx, iwarp.AcceptConfig{QP: l.config(), NoReads: true,
		MPA: mpa.Answer{PrivateData: greeting()}, Prepare: l.prepare})
	if err != nil {
		l.release()
		return s.orFull(req, err)
	}
	err = s.attend(ctx, l, req)
	if ctx.Err() != nil {
		_ = l.close(nil) // in order: the client goes on when there is a server again
		return context.Cause(ctx)
	}
	if err == nil {
		l.release() // the client has closed, and when it sees our end the next one finds this memory free
	}
	return l.close(err)
}

// orFull is the error of an Accept. If there is no memory for the client, it is told so.
func (s *Server) orFull(req *iwarp.Request, err error) error {
	if errors.Is(err, iwarp.ErrLimit) {
		return s.rejecter.RejectBecause(req, []byte(
			"iwarp cp: the server has no memory left for another copy: try again later"), err)
	}
	return err
}

// attend does what a client asks for, until it closes.
func (s *Server) attend(ctx context.Context, l *link, req *iwarp.Request) error {
	m, err := l.receive(ctx)
	if err != nil {
		return err
	}
	b, ok := m.(message.Begin)
	if !ok {
		return unexpected(m, "Begin")
	}
	log := s.cfg.Logger.With("remote", req.RemoteAddr().String())
	t := teller{watch: func(e Event) {
		if o, ok := e.(*Outcome); ok {
			record(ctx, log, b, o)
		}
	}}
	if b.Put {
		err = s.put(ctx, l, t, b)
	} else {
		err = s.get(ctx, l, t, b)
	}
	if told := (*Outcome)(nil); errors.As(err, &told) {
		_ = l.farewell(ctx) // the client has been answered, and hears that
	}
	if err != nil {
		return err
	}
	return l.farewell(ctx)
}

// record logs what has become of a file, by its path in the directory.
func record(ctx context.Context, log *slog.Logger, b message.Begin, o *Outcome) {
	level, at := slog.LevelInfo, o.Path
	if !o.Good() || o.Text != "" {
		level = slog.LevelWarn
	}
	if !b.Put {
		at = below(b.Path, at)
	}
	log.Log(ctx, level, o.Code.String(), "path", at, "put", b.Put, "reason", o.Text)
}

// farewell waits until the other end closes.
func (l *link) farewell(ctx context.Context) error {
	m, err := l.receive(ctx)
	switch {
	case errors.Is(err, iwarp.ErrPeerClosed):
		return nil
	case err != nil:
		return err
	}
	return unexpected(m, "the end")
}

// put receives what a client puts here.
func (s *Server) put(ctx context.Context, l *link, t teller, b message.Begin) error {
	to, err := s.sinkOf(b)
	if err != nil {
		a := answerOf(err)
		t.report(&Outcome{cmp.Or(b.Path, "."), a.Code, a.Text})
	}
	if bad := l.send(ctx, answerOf(err)); bad != nil || err != nil {
		return bad
	}
	return (&receiver{link: l, teller: t, sink: to}).receiveAll(ctx)
}

// sinkOf is where a client's files go: into a directory, if there is one of that name.
func (s *Server) sinkOf(b message.Begin) (sink, error) {
	to := sink{root: s.root, dir: ".", dirs: b.Recursive, force: b.Force, resume: b.Resume}
	if !s.cfg.Writable {
		return to, fail(message.ReadOnly, "")
	}
	if b.Path == "" {
		return to, nil
	}
	info, err := s.root.Stat(b.Path)
	switch {
	case err == nil && info.IsDir():
		to.dir = b.Path
		return to, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return to, err
	case b.Into:
		return to, fail(message.NotRegular, "there is no such directory")
	}
	to.dir, to.as = path.Split(b.Path)
	to.dir = path.Clean(to.dir)
	if info, err := s.root.Stat(to.dir); err != nil || !info.IsDir() {
		return to, fail(message.NotRegular, "there is no directory to put it in")
	}
	return to, nil
}

// get sends what a client wants.
func (s *Server) get(ctx context.Context, l *link, t teller, b message.Begin) error {
	src := source{root: s.root, name: ".", as: everything}
	if b.Path != "" {
		src.name, src.as = b.Path, path.Base(b.Path)
	}
	if err := l.send(ctx, message.Answer{}); err != nil {
		return err
	}
	out := &sender{link: l, teller: t, pace: newPace(b.Rate)}
	if err := out.sendAll(ctx, src, b.Recursive); err != nil {
		return err
	}
	return out.sendEnd(ctx, "what was asked for")
}

// everything is what the whole of a server's directory is called.
const everything = "everything"
