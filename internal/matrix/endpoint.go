package matrix

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// transfer is how many bytes a Send, a Write and a Read have: enough to cross five
// markers.
const transfer = 3000

// An endpoint is an end of ours with the memory that it needs.
type endpoint struct {
	who    string
	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	causes *causes
	qp     *iwarp.QP
	// reads: both ends have the depths for an RDMA Read by this end.
	reads bool

	source, inbox, sink, fetched *iwarp.MR
}

func newEndpoint(who string, kind mpa.Kind, seed byte) (*endpoint, error) {
	e := &endpoint{who: who, causes: new(causes)}
	e.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Kind: kind, Logger: slog.New(e.causes)})
	var err error
	if e.pd, err = e.rnic.AllocPD(); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		mr     **iwarp.MR
		bytes  []byte
		access iwarp.Access
	}{
		{&e.source, pattern(transfer, seed), iwarp.RemoteRead},
		{&e.inbox, make([]byte, transfer), iwarp.LocalWrite},
		{&e.sink, make([]byte, transfer), iwarp.RemoteWrite},
		{&e.fetched, make([]byte, transfer), iwarp.LocalWrite},
	} {
		if *m.mr, err = e.pd.Register(m.bytes, m.access); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// qpConfig gives a close as long as the row has.
func (e *endpoint) qpConfig(ctx context.Context) iwarp.QPConfig {
	return iwarp.QPConfig{CloseTimeout: timeLeft(ctx)}
}

// timeLeft is how much time the row has yet, or 0 if it has no bound.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(end), time.Nanosecond)
}

// beyondTimeLeft is more time than the row has, or 0 if it has no bound: it is the row's end that ends a startup, and
// is told of as that.
func beyondTimeLeft(ctx context.Context) time.Duration {
	if left := timeLeft(ctx); left > 0 {
		return left + time.Minute
	}
	return 0
}

// prepare posts the receive.
func (e *endpoint) prepare(qp *iwarp.QP) error {
	return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{e.inbox.Slice(0, transfer)}})
}

// exchange has both ends send what they can, and returns what has arrived intact from
// each.
func exchange(ctx context.Context, i, r *endpoint, responderFirst bool) (verified string, err error) {
	for _, pair := range [][2]*endpoint{{i, r}, {r, i}} {
		e, peer := pair[0], pair[1]
		e.reads = e.qp.Query().ORD > 0 && peer.qp.Query().IRD > 0
	}
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = i.play(ctx, r, responderFirst) })
	both.Go(func() { errs[1] = r.play(ctx, i, false) })
	both.Wait()
	for n, e := range []*endpoint{i, r} {
		if errs[n] != nil {
			return "", fmt.Errorf("%s: %w", e.who, errs[n])
		}
	}
	return i.arrived(r) + "/" + r.arrived(i), nil
}

// play is the part of one end. The peer's Send says that the peer's Write has arrived.
func (e *endpoint) play(ctx context.Context, peer *endpoint, listenFirst bool) error {
	if listenFirst {
		if err := e.receive(ctx); err != nil {
			return err
		}
	}
	if _, err := e.qp.Write(ctx, e.source.Slice(0, transfer), peer.sink.Remote(0)); err != nil {
		return err
	}
	if e.reads {
		if _, err := e.qp.Read(ctx, e.fetched.Slice(0, transfer), peer.source.Remote(0)); err != nil {
			return err
		}
	}
	if err := e.qp.Send(ctx, e.source.Slice(0, transfer)); err != nil || listenFirst {
		return err
	}
	return e.receive(ctx)
}

// receive waits for the peer's Send.
func (e *endpoint) receive(ctx context.Context) error {
	wc, err := e.qp.RecvCQ().Next(ctx)
	if err != nil {
		return err
	}
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.Op != iwarp.OpRecv || wc.Length != transfer {
		return fmt.Errorf("a completion of %v with %s in place of the Send's", wc.Op, wording.Bytes(wc.Length))
	}
	return nil
}

// arrived returns a letter for each operation of e that has had its effect.
func (e *endpoint) arrived(peer *endpoint) string {
	var s strings.Builder
	for _, c := range []struct {
		letter    byte
		got, want *iwarp.MR
		tried     bool
	}{
		{'s', peer.inbox, e.source, true},
		{'w', peer.sink, e.source, true},
		{'r', e.fetched, peer.source, e.reads},
	} {
		switch {
		case !c.tried:
		case bytes.Equal(c.got.Bytes(), c.want.Bytes()):
			s.WriteByte(c.letter)
		default:
			s.WriteByte('!')
		}
	}
	return s.String()
}

// causes is a log that keeps only the causes of failures. That a connection was closed in order is none.
type causes struct {
	mu    sync.Mutex
	texts []string
}

// Enabled implements slog.Handler.
func (c *causes) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (c *causes) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		return true
	})
	if cause := attrs["cause"]; cause != "" && attrs["state"] != iwarp.StateClosed.String() {
		c.add(cause)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (c *causes) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c *causes) WithGroup(string) slog.Handler { return c }

// add keeps a text that is not there yet.
func (c *causes) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.texts, text) {
		c.texts = append(c.texts, text)
	}
}

func (c *causes) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.texts) == 0
}

func (c *causes) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.texts, "; ")
}
