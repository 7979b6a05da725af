package conform_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/rping/message"
	services "github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A setup is our endpoint as the peer under test.
type setup struct {
	role    mpa.Role
	dialect mpa.Dialect
	offer   mpa.Offer
	rejects bool // the Responder rejects every Request
	delayed bool // MPA is started after streaming data
	// takes, if it is set, reports whether the Responder's application takes private data. It rejects others with R=1,
	// as iwarp serve does.
	takes func(data []byte) bool
	// between, if it is set, is put between the suite and the endpoint.
	between func(suite, endpoint net.Conn)
}

// peer starts the endpoint and returns it, and what stops it.
func (c setup) peer(t *testing.T) (conform.Peer, func()) {
	if c.role == mpa.RoleResponder {
		return c.responder(t)
	}
	p := &client{setup: c}
	return p, p.Release
}

// connect returns the suite's end of a connection and the endpoint's.
func (c *setup) connect(tasks *sync.WaitGroup) (suite, endpoint net.Conn) {
	near, far := testrig.Pipe("suite", "endpoint")
	if c.between == nil {
		return near, far
	}
	inner, own := testrig.Pipe("suite", "endpoint")
	tasks.Go(func() { c.between(far, inner) })
	return near, own
}

// server is rping -s of ours.
type server struct {
	setup
	ln    *testrig.Listener
	tasks sync.WaitGroup
}

func (c setup) responder(t *testing.T) (conform.Peer, func()) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{setup: c, ln: testrig.NewListener("endpoint")}
	var conns net.Listener = s.ln
	if c.delayed {
		conns = streamListener{s.ln}
	}
	ln := (&iwarp.ListenConfig{Dialects: []mpa.Dialect{c.dialect, mpa.DialectRFC5044,
		mpa.DialectRFC6581, mpa.DialectRevision0}}).NewListener(conns)
	s.tasks.Go(func() {
		cfg := rping.ServerConfig{Config: rping.Config{MPA: c.offer}, Persistent: true}
		if c.rejects {
			cfg.Reject = new(string)
		}
		if err := c.serve(ctx, ln, cfg); err != nil {
			t.Errorf("rping: %v", err)
		}
	})
	return s, func() {
		cancel()
		ln.Close()
		s.tasks.Wait()
	}
}

// serve is rping's, for requests that the application takes.
func (c setup) serve(ctx context.Context, ln *iwarp.Listener, cfg rping.ServerConfig) error {
	if c.takes == nil {
		return rping.Serve(ctx, ln, cfg)
	}
	s := rping.NewServer(ln.RNIC(), cfg.Config)
	one := services.Service{Name: "rping", Knows: func(req *iwarp.Request) bool { return c.takes(req.PrivateData()) },
		Serve: s.Serve}
	return services.New(services.Config{Services: []services.Service{one}, Grace: time.Minute,
		Log: slog.New(slog.DiscardHandler)}).Run(ctx, ln)
}

// streaming is what is said before a delayed startup.
var streaming = conform.Streaming{Initiator: "hello\n", Responder: "go ahead\n"}

// A streamListener has the Responder's part of it said before a connection is accepted.
type streamListener struct{ *testrig.Listener }

func (l streamListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || answerStream(c) {
			return c, err
		}
		c.Close()
	}
}

func answerStream(c net.Conn) bool {
	b := make([]byte, len(streaming.Initiator))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != streaming.Initiator {
		return false
	}
	_, err := io.WriteString(c, streaming.Responder)
	return err == nil
}

// askStream says the Initiator's part.
func askStream(c net.Conn) error {
	if _, err := io.WriteString(c, streaming.Initiator); err != nil {
		return err
	}
	b := make([]byte, len(streaming.Responder))
	_, err := io.ReadFull(c, b)
	return err
}

func (s *server) Connect(ctx context.Context) (net.Conn, error) {
	suite, endpoint := s.connect(&s.tasks)
	return suite, s.ln.Offer(ctx, endpoint)
}

func (s *server) Again(context.Context) (net.Conn, error) {
	return nil, errors.New("a Responder does not connect")
}

func (s *server) Release() {}

// client is rping -c of ours, once for each connection.
type client struct {
	setup
	cancel context.CancelFunc
	again  chan net.Conn
	tasks  sync.WaitGroup
}

func (p *client) Connect(ctx context.Context) (net.Conn, error) {
	p.Release()
	ctx, p.cancel = context.WithCancel(ctx)
	p.again = make(chan net.Conn)
	suite, endpoint := p.connect(&p.tasks)
	p.tasks.Go(func() { p.run(ctx, endpoint) })
	return suite, nil
}

func (p *client) Again(ctx context.Context) (net.Conn, error) {
	select {
	case c := <-p.again:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *client) Release() {
	if p.cancel != nil {
		p.cancel()
	}
	p.tasks.Wait()
}

// run pings once, and tries again with revision 1 as a Dialer does.
func (p *client) run(ctx context.Context, c net.Conn) {
	offer := p.offer
	offer.Dialect = p.dialect
	err := p.ping(ctx, c, offer)
	var failed *mpa.StartupError
	var rejected *iwarp.RejectError
	if errors.As(err, &rejected) {
		rejected.Conn.Close()
	}
	if errors.As(err, &failed) && failed.Fallback || rejected != nil && rejected.Fallback {
		suite, endpoint := p.connect(&p.tasks)
		select {
		case p.again <- suite:
			offer.Dialect = mpa.DialectRFC5044
			_ = p.ping(ctx, endpoint, offer)
		case <-ctx.Done():
			suite.Close()
			endpoint.Close()
		}
	}
}

// ping is one ping, after what precedes a delayed startup.
func (p *client) ping(ctx context.Context, c net.Conn, offer mpa.Offer) error {
	if p.delayed {
		if err := askStream(c); err != nil {
			c.Close()
			return err
		}
	}
	return ping(ctx, c, offer)
}

// ping is one ping of rping as client, over a connection that is there already.
func ping(ctx context.Context, c net.Conn, offer mpa.Offer) error {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	if err != nil {
		return err
	}
	const access = iwarp.LocalWrite | iwarp.RemoteRead | iwarp.RemoteWrite
	text := []byte(pingText)
	source, err := pd.Register(text, access)
	if err != nil {
		return err
	}
	sink, err := pd.Register(make([]byte, len(text)), access)
	if err != nil {
		return err
	}
	in, err := pd.Register(make([]byte, message.Len), access)
	if err != nil {
		return err
	}
	offer.IRD, offer.ORD = 1, 1
	d := iwarp.Dialer{PD: pd, MPA: offer, QP: iwarp.QPConfig{RecvDepth: 2}}
	d.Prepare = func(qp *iwarp.QP) error {
		for range 2 {
			if err := qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{in.Slice(0, in.Len())}}); err != nil {
				return err
			}
		}
		return nil
	}
	qp, err := d.Initiate(ctx, c, nil)
	if err != nil {
		return err
	}
	defer qp.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-qp.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, mr := range []*iwarp.MR{source, sink} {
		if err := exchange(ctx, qp, pd, mr); err != nil {
			return err
		}
	}
	return nil
}

// exchange tells the server of a buffer and waits for its go ahead.
func exchange(ctx context.Context, qp *iwarp.QP, pd *iwarp.PD, mr *iwarp.MR) error {
	r := mr.Remote(0)
	advert := message.Advert{TO: r.TO, STag: r.STag, Length: uint32(mr.Len())}
	out, err := pd.Register(advert.Append(nil), iwarp.LocalWrite)
	if err != nil {
		return err
	}
	if err := qp.Send(ctx, out.Slice(0, out.Len())); err != nil {
		return err
	}
	wc, err := qp.RecvCQ().Next(ctx)
	if err != nil {
		return err
	}
	if wc.Err() != nil {
		return fmt.Errorf("receive: %w", wc.Err())
	}
	return nil
}
