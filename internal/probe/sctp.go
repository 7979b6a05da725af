package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// ErrNoAssociation says that nobody answers an INIT. Other errors wrap it.
var ErrNoAssociation = errors.New("no SCTP association in UDP")

// SCTPConfig says whom to ask over SCTP in UDP (RFC 6951), and how.
type SCTPConfig struct {
	// Addr is the listener's host and port, of UDP and of SCTP.
	Addr string
	// Timeout is how long to wait for each answer. If zero, DefaultTimeout.
	Timeout time.Duration
	// GiveUp bounds how long a peer is waited for that has answered before, and then does not. If zero, DefaultGiveUp.
	GiveUp time.Duration
	// PrivateData goes into every Initiate. It has at most 508 bytes.
	PrivateData []byte
	// Limit, Record and Progress are as in Config.
	Limit    time.Duration
	Record   *capture.Writer
	Progress func(name string)
}

// RunSCTP asks the listening end of DDP over SCTP (RFC 5043, RFC 6581 section 7) all
// questions. Its error is as that of Run, with ErrNoAssociation.
func RunSCTP(ctx context.Context, cfg SCTPConfig) (*SCTPReport, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if err := CheckPrivateData(cfg.PrivateData); err != nil {
		return nil, err
	}
	p := &sctpProber{
		cfg: cfg, budget: newBudget(ctx, cmp.Or(cfg.Limit, DefaultLimit)),
		report:   &SCTPReport{Peer: cfg.Addr, Network: "sctp"},
		presence: &presence{timeout: cfg.Timeout, giveUp: cmp.Or(cfg.GiveUp, DefaultGiveUp)},
	}
	defer p.end()
	return p.run(ctx)
}

// run asks, and returns what there is.
func (p *sctpProber) run(ctx context.Context) (*SCTPReport, error) {
	r := p.report
	err := p.askAll()
	r.OutOfTime, r.Interrupted = errors.Is(err, ErrOutOfTime), err != nil && ctx.Err() != nil
	if err != nil && !r.Interrupted && (len(r.Questions) == 0 || !errors.Is(err, ErrNoAssociation) && !r.OutOfTime) {
		return nil, err
	}
	r.Stopped, r.NotAsked = p.stop, p.rest
	if err == nil {
		err = p.stop.Err()
	}
	r.Incomplete = err != nil
	return r, err
}

func (p *sctpProber) askAll() error {
	for _, stage := range sctpStages {
		if err := stage(p); err != nil {
			return err
		}
	}
	return p.over
}

// sctpStages are asked in this order.
var sctpStages = [...]func(*sctpProber) error{
	(*sctpProber).askSessions, (*sctpProber).askIndications, (*sctpProber).askKinds, (*sctpProber).askReadDepths,
	(*sctpProber).askLengths, (*sctpProber).askOdd, (*sctpProber).askStreams,
}

// An sctpProber asks one listener.
type sctpProber struct {
	cfg    SCTPConfig
	budget // of all questions
	*presence
	report *SCTPReport
}

// A talk is the association of one question.
type talk struct {
	*script.Association
	p *sctpProber
	q *SessionQuestion
}

// until is when the peer must have answered.
func (t *talk) until() time.Time { return t.p.after(t.p.cfg.Timeout) }

// after is the time after some, or the end of all.
func (p *sctpProber) after(d time.Duration) time.Time { return time.Now().Add(p.within(d)) }

// associate asks a question in an association of its own. If there is one, further goes on. A peer that does not
// answer, and has answered before, is asked the control question. It returns nil without an error if the peer is gone, or
// there is no more time.
func (p *sctpProber) associate(name string, ours chunk.Setup, further func(*talk)) (*SessionQuestion, error) {
	if over := p.spent(); over != nil {
		p.cut(name, over)
		return nil, nil
	}
	q, err := p.associated(name, ours, further)
	if over := p.spent(); q == nil && over != nil {
		p.cut(name, over)
		return nil, nil
	}
	return q, err
}

func (p *sctpProber) associated(name string, ours chunk.Setup, further func(*talk)) (*SessionQuestion, error) {
	if p.stop != nil {
		p.spare(name)
		return nil, nil
	}
	if p.cfg.Progress != nil {
		p.cfg.Progress(name)
	}
	for again := false; ; again = true {
		q, err := p.once(name, ours, p.cfg.Timeout, further)
		if p.known() && (errors.Is(err, ErrNoAssociation) || err == nil && !q.isAnswered()) {
			away, over := p.control(name)
			switch {
			case p.stop != nil || over != nil:
				return nil, over
			case !again && (away > 0 || err != nil):
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		p.settled(q, ours, further)
		return q, nil
	}
}

// control asks what the peer has answered first, until it is answered, and returns how long that took. If it is not,
// the peer is gone.
func (p *sctpProber) control(name string) (away time.Duration, err error) {
	away, err = p.persist(&p.budget, p.again)
	switch over := p.spent(); {
	case over != nil:
		return 0, over
	case err != nil:
		all := p.report.Questions
		p.leave(len(all), all[len(all)-1].Name, name, err)
	case away > 0:
		p.report.Away = append(p.report.Away, Absence{name, report.Milliseconds(away)})
	}
	return away, nil
}

// settled adds a question, the first that is answered as the control question.
func (p *sctpProber) settled(q *SessionQuestion, ours chunk.Setup, further func(*talk)) {
	p.report.Questions = append(p.report.Questions, q)
	if p.known() || !q.isAnswered() {
		return
	}
	p.keepControl(func(wait time.Duration) (reaction, error) {
		return p.once("the control question", ours, wait, further)
	})
}

// once asks a question in an association, whatever comes of it.
func (p *sctpProber) once(name string, ours chunk.Setup, wait time.Duration,
	further func(*talk)) (*SessionQuestion, error) {
	if err := p.spent(); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(p.ctx, "udp", p.cfg.Addr)
	if err == nil {
		conn, err = recorded(conn, p.cfg.Record)
	}
	if err != nil {
		return nil, &notReached{name, ErrNoAssociation, err}
	}
	q := &SessionQuestion{Name: name}
	began := time.Now()
	a, err := script.Associate(p.ctx, conn, ours, p.after(wait))
	over := p.spent()
	switch {
	case over != nil:
		return nil, over
	case errors.Is(err, script.ErrRefused):
		q.Outcome, q.Answer = Aborted, "ABORT in answer to the INIT"
	case err != nil && ours.Indicates(sctp.AdaptationDDP):
		return nil, &notReached{name, ErrNoAssociation, err}
	case err != nil:
		q.Outcome = Silent
	default:
		defer a.Leave(p.after(2 * p.cfg.Timeout))
		p.report.setup(&a.Peer)
		q.Outcome = Accepted
		further(&talk{a, p, q})
	}
	q.Milliseconds = report.Milliseconds(time.Since(began))
	if err := p.spent(); err != nil {
		return nil, err
	}
	return q, nil
}

// initiate asks for a session, and takes the answer.
func (p *sctpProber) initiate(name string, e *mpa.Enhanced,
	further func(*talk, *script.Session)) (*SessionQuestion, error) {
	return p.associate(name, script.DDPSetup(), func(t *talk) {
		s := t.Session(0)
		t.ask(s, p.request(e))
		if further != nil && t.q.Outcome == Accepted {
			further(t, s)
		}
		t.part(s)
	})
}

// request returns an Initiate, an enhanced one if there is e.
func (p *sctpProber) request(e *mpa.Enhanced) sctp.Control {
	c := sctp.Control{Function: sctp.FunctionInitiate, PrivateData: p.cfg.PrivateData}
	if e != nil {
		c.Function, c.Enhanced = sctp.FunctionEnhancedInitiate, *e
	}
	return c
}

// ask sends an Initiate, and takes the answer.
func (t *talk) ask(s *script.Session, c sctp.Control) {
	if c.Function.IsEnhanced() {
		t.q.asked = &c.Enhanced
	}
	t.say(s, s.Control(c))
}

// say sends a message in place of an Initiate, and takes the answer.
func (t *talk) say(s *script.Session, m sctp.Message) {
	t.Send(m)
	t.q.Outcome, t.q.Answer = t.hear(s)
}

// hear takes the next message of a session.
func (t *talk) hear(s *script.Session) (Outcome, string) {
	m, ok := s.Next(t.until())
	if !ok {
		return t.silence()
	}
	switch {
	case len(m.Data) < sctp.SSNLen:
		return Foreign, fmt.Sprintf("PPID %d without room for a DDP-SSN", m.PPID)
	case m.PPID == sctp.PPIDSegment:
		return SentFirst, fmt.Sprintf("a DDP Segment of %s", wording.Bytes(len(m.Data)-sctp.SSNLen))
	}
	c, err := sctp.ParseControl(m.Data)
	if m.PPID != sctp.PPIDControl || err != nil {
		return Foreign, fmt.Sprintf("PPID %d: % x", m.PPID, m.Data[:min(len(m.Data), shown)])
	}
	return t.control(&c)
}

// control takes a session control message.
func (t *talk) control(c *sctp.Control) (Outcome, string) {
	text := c.Function.String()
	if c.HasEnhanced() {
		t.q.answered = &c.Enhanced
		text += fmt.Sprintf(": IRD %v, ORD %v", c.Enhanced.IRD, c.Enhanced.ORD)
		if c.Enhanced.A {
			text += fmt.Sprintf(", peer-to-peer, RTR %v", c.Enhanced.RTR())
		}
	}
	if n := len(c.PrivateData); n > 0 {
		text += fmt.Sprintf(", %s of private data", wording.Bytes(n))
	}
	switch c.Function.Plain() {
	case sctp.FunctionAccept:
		return Accepted, text
	case sctp.FunctionReject:
		return Rejected, text
	case sctp.FunctionTerminate:
		return Terminated, text
	}
	return Foreign, text
}

// silence is the outcome where no message has come.
func (t *talk) silence() (Outcome, string) {
	switch end, why := t.End(); end {
	case script.FIN:
		return Closed, "SHUTDOWN"
	case script.RST:
		if why != "" {
			return Aborted, fmt.Sprintf("ABORT: %q", why)
		}
		return Aborted, "ABORT"
	}
	return Silent, ""
}

// part ends a session that was accepted, and notes how the peer ends it.
func (t *talk) part(s *script.Session) {
	if t.q.Outcome != Accepted {
		return
	}
	for _, m := range s.Parting(t.q.asked, t.q.answered) {
		t.Send(m)
	}
	t.Send(s.Function(sctp.FunctionTerminate))
	for until := t.until(); ; {
		m, ok := s.Next(until)
		if !ok {
			t.q.Then, _ = t.silence()
			return
		}
		if c, err := sctp.ParseControl(m.Data); m.PPID == sctp.PPIDControl && err == nil &&
			c.Function == sctp.FunctionTerminate {
			t.q.Then = Terminated
			return
		}
	}
}
