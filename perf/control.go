package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp"
)

// controlSize is how many bytes a control message has at most.
const controlSize = 64 << 10

// A request is what the initiator sends on the control connection; each is
// answered before the next.
type request struct {
	Open  *Options `json:"open,omitempty"`  // what is going to be measured
	Lanes []region `json:"lanes,omitempty"` // all connections are up: where the initiator's memory is
	Slice *job     `json:"slice,omitempty"` // get ready for a slice
	Check bool     `json:"check,omitempty"` // the slice is over: is the data right?
}

// An answer is what the responder sends, and where it rejects a connection the private
// data of its rejection.
type answer struct {
	Error   string `json:"error,omitempty"`
	Corrupt bool   `json:"corrupt,omitempty"` // the error is about wrong data
	// which data that is; a responder of an earlier version does not say
	Wrong    *CorruptionError `json:"wrong,omitempty"`
	UnderWay bool             `json:"under_way,omitempty"` // the error is that another measurement goes on
	Option   bool             `json:"option,omitempty"`    // the error is an option's
	TCPHere  bool             `json:"tcp_here,omitempty"`  // to Open: plain TCP comes to the address of the QPs
	TCPPort  int              `json:"tcp_port,omitempty"`  // to Open: or to a port of its own
	Lanes    []region         `json:"lanes,omitempty"`     // to Lanes
	CC       string           `json:"cc,omitempty"`        // to Lanes
	Usage    *usage           `json:"usage,omitempty"`     // to Check, if the ends are apart
	Arrived  arrivals         `json:"arrived,omitzero"`    // to Check: all that this end has received
}

// A PeerError is what the other end says is wrong. If it has found wrong data, errors.As finds a [CorruptionError].
type PeerError struct {
	Text     string
	Corrupt  bool // it has found wrong data
	UnderWay bool // it takes part in another measurement: a later try may find it free
	Option   bool // an option is wrong, or cannot be had there

	wrong *CorruptionError // if it is Corrupt
}

// failure is the answer that tells an error.
func failure(err error) answer {
	a := answer{Error: err.Error(), UnderWay: errors.Is(err, errUnderWay), Option: errors.As(err, new(*OptionError))}
	a.Corrupt = errors.As(err, &a.Wrong)
	return a
}

// told returns what a failure tells, or nil.
func (a *answer) told() error {
	if a.Error == "" {
		return nil
	}
	return &PeerError{a.Error, a.Corrupt, a.UnderWay, a.Option, a.wrong()}
}

// wrong is the data that the failure is about, or nil.
func (a *answer) wrong() *CorruptionError {
	switch {
	case !a.Corrupt:
		return nil
	case a.Wrong == nil:
		return &CorruptionError{Side: responder.String()}
	}
	return a.Wrong
}

// opened refuses an answer to Open that does not say where plain TCP goes, where there is to be some.
func (a *answer) opened(opts Options) error {
	if !opts.NoBaseline && !a.TCPHere && (a.TCPPort < 1 || a.TCPPort > math.MaxUint16) {
		return fmt.Errorf("perf: the responder has answered that it takes plain TCP at port %d, which is none: it is no responder of iwarp perf (--listen) it seems", a.TCPPort)
	}
	return nil
}

func (e *PeerError) Error() string { return "perf: the responder says: " + e.Text }

// Unwrap returns the CorruptionError that the other end tells of, or nil.
func (e *PeerError) Unwrap() error {
	if e.wrong == nil { // and not an error that holds a nil
		return nil
	}
	return e.wrong
}

// control is the connection on which the two ends agree on what to do.
type control struct {
	other side // whose messages come
	qp    *iwarp.QP
	cq    *iwarp.CQ
	in    [2]*iwarp.MR // of one, the other end may be about to send its last word
	out   *iwarp.MR
}

// controlMemory is how many bytes a control has registered.
const controlMemory = 3 * controlSize

// newControl returns what there is of it even if there is an error.
func newControl(other side, rnic *iwarp.RNIC, pd *iwarp.PD) (c *control, err error) {
	c = &control{other: other}
	if c.cq, err = rnic.CreateCQ(16); err != nil {
		return c, err
	}
	for i := range c.in {
		if c.in[i], err = pd.Register(make([]byte, controlSize), iwarp.LocalWrite); err != nil {
			return c, err
		}
	}
	c.out, err = pd.Register(make([]byte, controlSize), iwarp.LocalWrite)
	return c, err
}

func (c *control) release() { giveBack(c.cq, c.in[0], c.in[1], c.out) }

func (c *control) config() iwarp.QPConfig {
	return iwarp.QPConfig{SendCQ: c.cq, RecvCQ: c.cq, SendDepth: 4, RecvDepth: 4}
}

// prepare posts the receives for the other end's first message, and for its last word.
func (c *control) prepare(qp *iwarp.QP) error {
	c.qp = qp
	return errors.Join(c.post(0), c.post(1))
}

func (c *control) post(i uint64) error {
	return c.qp.PostRecv(&iwarp.RecvWR{ID: i, SGL: []iwarp.SGE{c.in[i].Slice(0, controlSize)}})
}

// call sends a request and returns its answer.
func (c *control) call(ctx context.Context, req request) (answer, error) {
	var a answer
	if err := c.send(ctx, req); err != nil {
		return a, err
	}
	if err := c.receive(ctx, &a); err != nil {
		return a, err
	}
	return a, a.told()
}

// next waits for a request.
func (c *control) next(ctx context.Context) (request, error) {
	var req request
	err := c.receive(ctx, &req)
	return req, err
}

// answer answers a request; the next may then come at any time.
func (c *control) answer(ctx context.Context, a answer) error {
	return c.send(ctx, a)
}

func (c *control) send(ctx context.Context, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > controlSize {
		return fmt.Errorf("perf: a control message of %d bytes: %d is the limit", len(text), controlSize)
	}
	n := copy(c.out.Bytes(), text)
	return c.ended(ctx, c.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{c.out.Slice(0, n)}}))
}

// receive waits for a message. It passes over the completion of our own Send,
// which must be in before out is used again: the other end answers, so it is.
func (c *control) receive(ctx context.Context, v any) error {
	for {
		wc, err := c.cq.Next(ctx)
		switch {
		case err != nil:
			return c.ended(ctx, err)
		case wc.Err() != nil:
			return c.ended(ctx, wc.Err())
		case wc.Op == iwarp.OpRecv:
			err := c.parse(c.message(wc), v)
			// where the other end has closed, nothing more can be received, which whoever waits for it will hear
			_ = c.post(wc.ID)
			return err
		}
	}
}

// parse reads a message: an object of JSON.
func (c *control) parse(text []byte, v any) error {
	if isLastWord(text) {
		return &InterruptedError{c.other.String()}
	}
	err := json.Unmarshal(text, v)
	if err == nil && string(text) == "null" {
		err = errors.New("it is null")
	}
	if err != nil {
		return fmt.Errorf("perf: what the %v has sent on the control connection is no message of iwarp perf: %w",
			c.other, err)
	}
	return nil
}

// ended tells what an error on the connection means for it.
func (c *control) ended(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	err = endReason(ctx, c.qp, err)
	if errors.Is(err, iwarp.ErrPeerClosed) || errors.Is(err, iwarp.ErrConnectionLost) {
		return c.orInterrupted(&GoneError{c.other.String(), err})
	}
	return c.orInterrupted(fmt.Errorf("perf: control connection: %w", err))
}
