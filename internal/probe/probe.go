package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
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
	// is left then. After its first silence it is given a third of Timeout for each answer. It also
	// bounds how long a peer is waited for that has answered before, and then does not. If
	// zero, DefaultGiveUp; if negative, a peer that has answered nothing is asked everything, with the whole Timeout.
	GiveUp time.Duration
	// Limit bounds the probe as a whole, however slowly the peer answers. If zero, DefaultLimit. What Slow may take is
	// added.
	Limit time.Duration
	// Slow also finds out how long the peer waits for a Request, by sending none. This
	// may take SlowTimeout.
	Slow bool
	// Extensions also finds out whether the peer knows Atomic Operations and Immediate Data (RFC
	// 7306), by messages that end three more connections in error. Linux's siw may crash its
	// kernel over them before 2026.
	Extensions bool
	// PrivateData goes into every Request, for applications that want some. It has at
	// most 508 bytes.
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
// of the context, says what is wrong with the Config, or wraps ErrUnreachable, ErrStopped or ErrOutOfTime. If the
// peer answered some questions and then none any more, or the time was over, Run returns a Report and
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
	p.budget = newBudget(ctx, limit)
	defer p.budget.end()
	if p.cfg.Dial == nil {
		p.cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: cfg.Timeout}).DialContext(ctx, "tcp", cfg.Addr)
		}
	}
	p.presence = &presence{timeout: cfg.Timeout, giveUp: cfg.GiveUp}
	if cfg.GiveUp < 0 {
		p.giveUp = DefaultGiveUp
	}
	return p.run(ctx)
}

// run asks, and concludes.
func (p *prober) run(ctx context.Context) (*Report, error) {
	r := p.report
	err := p.askAll()
	r.OutOfTime, r.Interrupted = errors.Is(err, ErrOutOfTime), err != nil && ctx.Err() != nil
	if err != nil && !r.Interrupted && (len(r.Questions) == 0 || !errors.Is(err, ErrUnreachable) && !r.OutOfTime) {
		return nil, err
	}
	r.Stopped, r.NotAsked = p.stop, p.rest
	if err == nil {
		err = p.stop.Err()
	}
	r.Incomplete = err != nil
	p.conclude()
	return r, err
}

// CheckPrivateData refuses what would not fit beside enhanced data.
func CheckPrivateData(b []byte) error {
	if len(b) > mpa.MaxEnhancedPrivateData {
		return fmt.Errorf("probe: %d bytes of private data: at most %d", len(b), mpa.MaxEnhancedPrivateData)
	}
	return nil
}

func (p *prober) askAll() error {
	for _, stage := range stages {
		if err := stage(p); err != nil {
			return err
		}
	}
	return p.over
}

// stages are asked in this order, as later ones build on what earlier ones found.
var stages = [...]func(*prober) error{
	(*prober).askRevisions, (*prober).askSMBDirect, (*prober).askDialects, (*prober).askPutOff,
	(*prober).askRTR, (*prober).askDepths, (*prober).askBits, (*prober).askPrivateData, (*prober).askInTwo,
	(*prober).askFPDU, (*prober).askExtensions, (*prober).askPatience,
}

// A prober asks one peer.
type prober struct {
	cfg    Config
	budget // of all questions
	*presence
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
// the peer has been silent for too long to be asked, or is gone, or there is no more time.
//
// A peer that has answered before, and does not answer now, is asked the control question. If it answers that at once,
// the question stands as it is. If it was away, it is asked the question once more.
func (p *prober) converse(name string, further func(*line, *Question), pieces ...[]byte) (*Question, error) {
	if over := p.spent(); over != nil {
		p.cut(name, over)
		return nil, nil
	}
	q, err := p.conversed(name, further, pieces)
	if over := p.spent(); q == nil && over != nil {
		p.cut(name, over)
		return nil, nil
	}
	return q, err
}

func (p *prober) conversed(name string, further func(*line, *Question), pieces [][]byte) (*Question, error) {
	wait, ask := p.patience()
	if !ask || p.stop != nil {
		p.spare(name)
		return nil, nil
	}
	if p.cfg.Progress != nil {
		p.cfg.Progress(name)
	}
	for again := false; ; again = true {
		q, err := p.connected(name, wait, further, pieces)
		if q == nil {
			return nil, err
		}
		if p.known() && !q.isAnswered() {
			away, err := p.control(name)
			if p.stop != nil || err != nil {
				return nil, err
			}
			q.StillThere = true
			if away > 0 && !again {
				continue
			}
		}
		p.settled(q, pieces)
		return q, nil
	}
}

// connected asks a question on a new connection. A peer that was there before is given the time to come back. q is nil
// if there is an error, or the peer is gone.
func (p *prober) connected(name string, wait time.Duration, further func(*line, *Question),
	pieces [][]byte) (q *Question, err error) {
	if !p.known() {
		return p.once(name, wait, further, pieces)
	}
	away, err := p.persist(&p.budget, func(time.Duration) error {
		q, err = p.once(name, wait, further, pieces)
		return err
	})
	if err != nil && errors.Is(err, ErrUnreachable) {
		p.gone(name, err)
		return nil, nil
	}
	if err == nil && away > 0 {
		p.missed(name, away)
	}
	return q, err
}

// control asks what the peer has answered first, until it is answered, and returns how long that took. If it is not,
// the peer is gone.
func (p *prober) control(name string) (away time.Duration, err error) {
	if p.cfg.Progress != nil {
		p.cfg.Progress(name + ": no answer; is the peer still there?")
	}
	away, err = p.persist(&p.budget, p.again)
	switch over := p.spent(); {
	case over != nil:
		return 0, over
	case err != nil:
		p.gone(name, err)
	case away > 0:
		p.missed(name, away)
	}
	return away, nil
}

// gone notes that the peer has stopped answering at a question, and missed, that it was away.
func (p *prober) gone(name string, why error) {
	all := p.report.Questions
	p.leave(len(all), all[len(all)-1].Name, name, why)
}

func (p *prober) missed(name string, away time.Duration) {
	p.report.Away = append(p.report.Away, Absence{name, report.Milliseconds(away)})
}

// settled adds a question, the first that is answered as the control question.
func (p *prober) settled(q *Question, pieces [][]byte) {
	p.report.Questions = append(p.report.Questions, q)
	if p.known() || !q.isAnswered() {
		return
	}
	p.keepControl(func(wait time.Duration) (reaction, error) {
		return p.once("the control question", wait, nil, pieces)
	})
}

// once asks a question on a connection, whatever comes of it.
func (p *prober) once(name string, wait time.Duration, further func(*line, *Question),
	pieces [][]byte) (*Question, error) {
	if err := p.spent(); err != nil {
		return nil, err
	}
	c, err := p.dial()
	if err != nil {
		if over := p.spent(); over != nil {
			return nil, over
		}
		return nil, &notReached{name, ErrUnreachable, err}
	}
	defer context.AfterFunc(p.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	q := &Question{Name: name}
	l := &line{script.NewLink(c), p.within(wait)}
	l.ask(q, pieces)
	if q.Outcome == Silent && p.ctx.Err() != nil {
		q.Outcome = l.answer(q, time.Now().Add(lastWait)) // a Reply may be on its way, and waits for an RTR indication
	}
	if further != nil && q.Outcome == Accepted {
		further(l, q)
	}
	l.leave(q)
	if err := p.spent(); err != nil {
		return nil, err // the peer may have had an answer
	}
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
