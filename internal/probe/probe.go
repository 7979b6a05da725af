package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
)

// DefaultTimeout is how long the probe waits for an answer.
const DefaultTimeout = 3 * time.Second

// SlowTimeout is how long the probe waits for a peer to lose its patience.
const SlowTimeout = 90 * time.Second

// Config says whom to ask, and how.
type Config struct {
	// Addr is the responder's host and port.
	Addr string
	// Dial opens a TCP connection to it. If nil, a net.Dialer does.
	Dial func(ctx context.Context) (net.Conn, error)
	// Network is what Dial connects over, for the report: "usertcp", or if empty "tcp".
	Network string
	// Timeout is how long to wait for each answer. If zero, DefaultTimeout.
	Timeout time.Duration
	// GiveUp bounds how long a peer is asked that answers nothing; Report.NotAsked has what
	// is left then. After its first silence it is given a third of Timeout for each answer. If
	// zero, DefaultGiveUp; if negative, everything is asked, with the whole Timeout.
	GiveUp time.Duration
	// Limit bounds the probe as a whole, however slowly the peer answers. If zero, DefaultLimit. What Slow may take is added.
	Limit time.Duration
	// Slow also finds out how long the peer waits for a Request, by sending none. This
	// may take SlowTimeout.
	Slow bool
	// Extensions also finds out whether the peer knows Atomic Operations and Immediate Data (RFC
	// 7306), by messages that end three more connections in error. Linux's siw may crash its
	// kernel over them before 2026.
	Extensions bool
	// PrivateData goes into every Request, for applications that want some. It has at
	// most 508 octets.
	PrivateData []byte
	// Record, if it is set, gets what is sent and received on connections of TCP.
	Record *capture.Writer
	// Progress, if it is set, is called with the name of each question before the
	// question is asked.
	Progress func(name string)
}

// ErrUnreachable says that no TCP connection can be made to the peer. Other errors wrap
// it.
var ErrUnreachable = errors.New("no TCP connection")

// Run asks all questions, one after another, and draws conclusions. Its error is that
// of the context, says what is wrong with the Config, or wraps ErrUnreachable or ErrOutOfTime. If the
// peer answered some questions and then could not be reached, or the time was over, Run returns a Report and
// an error.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	cfg.GiveUp = cmp.Or(cfg.GiveUp, DefaultGiveUp)
	if err := CheckPrivateData(cfg.PrivateData); err != nil {
		return nil, err
	}
	p := &prober{cfg: cfg, begun: time.Now(), report: &Report{Peer: cfg.Addr, Network: cmp.Or(cfg.Network, "tcp")}}
	limit := cmp.Or(cfg.Limit, DefaultLimit)
	if cfg.Slow {
		limit += SlowTimeout
	}
	p.budget = begin(ctx, limit)
	defer p.budget.end()
	if p.cfg.Dial == nil {
		p.cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: cfg.Timeout}).DialContext(ctx, "tcp", cfg.Addr)
		}
	}
	err := p.askAll()
	p.report.OutOfTime, p.report.Interrupted = errors.Is(err, ErrOutOfTime), err != nil && ctx.Err() != nil
	if err != nil && !p.report.Interrupted && (len(p.report.Questions) == 0 || !errors.Is(err, ErrUnreachable) && !p.report.OutOfTime) {
		return nil, err
	}
	p.report.Incomplete = err != nil
	p.conclude()
	return p.report, err
}

// CheckPrivateData refuses what would not fit beside enhanced data.
func CheckPrivateData(b []byte) error {
	if len(b) > mpa.MaxEnhancedPrivateData {
		return fmt.Errorf("probe: %d octets of private data: at most %d", len(b), mpa.MaxEnhancedPrivateData)
	}
	return nil
}

func (p *prober) askAll() error {
	for _, stage := range stages {
		if err := stage(p); err != nil {
			return err
		}
	}
	return nil
}

// stages are asked in this order, as later ones build on what earlier ones found.
var stages = [...]func(*prober) error{
	(*prober).askRevisions, (*prober).askSMBDirect, (*prober).askDialects, (*prober).askPutOff,
	(*prober).askRTR, (*prober).askDepths, (*prober).askBits, (*prober).askPrivateData, (*prober).askInTwo, (*prober).askFPDU, (*prober).askExtensions, (*prober).askPatience,
}

// A prober asks one peer.
type prober struct {
	cfg    Config
	budget // of all questions
	begun  time.Time
	report *Report
	smb    bool // it wants the depths of MS-SMBD in revision 1
	late   bool // what was put off is asked now
}

// ask asks one question on a connection of its own.
func (p *prober) ask(name string, frame []byte) (*Question, error) {
	return p.converse(name, nil, frame)
}

// converse asks a question, each piece of it in a segment of its own. If the Request is
// accepted, further goes on with the connection. It returns nil without an error if
// the peer has been silent for too long to be asked.
func (p *prober) converse(name string, further func(*line, *Question), pieces ...[]byte) (*Question, error) {
	if err := p.spent(); err != nil {
		return nil, err
	}
	wait, ask := p.patience()
	if !ask {
		p.spare(name)
		return nil, nil
	}
	if p.cfg.Progress != nil {
		p.cfg.Progress(name)
	}
	c, err := p.dial()
	if err != nil {
		if over := p.spent(); over != nil {
			return nil, over
		}
		return nil, fmt.Errorf("probe: %s: %w: %w", name, ErrUnreachable, err)
	}
	defer context.AfterFunc(p.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	q := &Question{Name: name}
	l := &line{script.NewLink(c), p.within(wait)}
	l.ask(q, pieces)
	if further != nil && q.Outcome == Accepted {
		further(l, q)
	}
	l.leave(q)
	if err := p.spent(); err != nil {
		return nil, err // the peer may have had an answer
	}
	p.report.Questions = append(p.report.Questions, q)
	return q, nil
}

// dial connects to the peer, and has the connection recorded.
func (p *prober) dial() (net.Conn, error) {
	c, err := p.cfg.Dial(p.ctx)
	if err != nil {
		return nil, err
	}
	return recorded(c, p.cfg.Record)
}

// recorded is a connection that is recorded, if there is a record.
func recorded(c net.Conn, record *capture.Writer) (net.Conn, error) {
	if record == nil {
		return c, nil
	}
	tapped, err := capture.Tap(c, record, capture.Forward)
	if err != nil {
		_ = c.Close()
	}
	return tapped, err
}

// request returns a Request Frame with the application's private data.
func (p *prober) request(f mpa.StartupFields, e *mpa.Enhanced) []byte {
	f.Key = mpa.KeyRequest
	if e != nil {
		f.S = true
		f.PrivateData = mpa.AppendEnhanced(nil, e)
	} else if p.smb && f.Rev == 1 {
		f.PrivateData = ulpdata.SMBDirect{IRD: usualDepth, ORD: usualDepth}.Append(nil)
	}
	f.PrivateData = append(f.PrivateData, p.cfg.PrivateData...)
	return mpa.AppendStartup(nil, &f)
}
