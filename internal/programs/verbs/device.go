//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/mpa"
)

// A Device is the RNIC of a process, and has all objects of the program. Its methods may be called by any thread.
type Device struct {
	rnic      *iwarp.RNIC
	log       *slog.Logger
	preset    *iwarp.Preset
	dialect   mpa.Dialect
	recording *Recording
	roce      bool
	ports     ports
	lines     lines
	listening listening
	rejecter  admission.Rejecter
	advised   sync.Once // the user, who has no log

	contexts   table[Context]
	pds        table[PD]
	mrs        keyed[MR]
	windows    keyed[Window]
	cqs        table[CQ]
	srqs       table[SRQ]
	qps        table[QP]
	endings    endings
	channels   table[Channel]
	cmChannels table[CMChannel]
	ids        table[ID]
	ahs        table[AH]
	uds        table[UD]

	// giveWay has the kernel run others on this processor first.
	giveWay func()
	// timewait is about how long an ID of RoCE is in the state of that name.
	timewait time.Duration

	numbers sync.Map // of uint32: the Handle of the QP with that number
	sources sync.Map // of *iwarp.CQ and *iwarp.SRQ: the *source that each belongs to
}

// NewDevice returns a Device. It exists as long as the process.
func NewDevice(cfg Config) *Device {
	d := &Device{
		rnic: iwarp.NewRNIC(cfg.RNIC), log: loggerOf(cfg.RNIC), preset: cfg.Preset, dialect: cfg.Dialect,
		recording: cfg.Recording, roce: cfg.RoCE,
		contexts: table[Context]{kind: kindContext}, pds: table[PD]{kind: kindPD}, mrs: keyed[MR]{kind: kindMR},
		windows: keyed[Window]{kind: kindWindow},
		cqs:     table[CQ]{kind: kindCQ}, srqs: table[SRQ]{kind: kindSRQ}, qps: table[QP]{kind: kindQP},
		channels: table[Channel]{kind: kindChannel}, cmChannels: table[CMChannel]{kind: kindCMChannel},
		ids: table[ID]{kind: kindID},
		ahs: table[AH]{kind: kindAH}, uds: table[UD]{kind: kindUD},
		giveWay: schedYield, timewait: timewait,
	}
	go d.watch()
	return d
}

// Close ends all connections. What the program still has fails from then on.
func (d *Device) Close() error { return d.rnic.Close() }

// A Context is an open device: a struct ibv_context, with the events that belong to no work request.
type Context struct{ events *Queue[AsyncEvent] }

// An AsyncEvent is what ibv_get_async_event returns: the number of an enum ibv_event_type, and what the program's side
// has called the object.
type AsyncEvent struct {
	Type  uint32
	Token uint64
}

// Numbers of asynchronous events.
const (
	asyncCQError  = 0
	asyncQPFatal  = 1
	asyncCommEst  = 4
	asyncSRQLimit = 15
	asyncLastWQE  = 16
)

// OpenContext makes a Context, whose events are shown by an eventfd, and wake those who wait.
func (d *Device) OpenContext(fd int, wake func()) (Handle, syscall.Errno) {
	return made(d.contexts.add(&Context{events: newQueue[AsyncEvent](fd, wake)}))
}

// CloseContext ends a Context.
func (d *Device) CloseContext(h Handle) syscall.Errno {
	c := d.contexts.remove(h)
	if c == nil {
		return syscall.EINVAL
	}
	c.events.close()
	return fine
}

// NextAsync takes the oldest asynchronous event of a Context. It is EAGAIN if there is none.
func (d *Device) NextAsync(h Handle) (AsyncEvent, syscall.Errno) {
	c := d.contexts.get(h)
	if c == nil {
		return AsyncEvent{}, syscall.EINVAL
	}
	e, ok := c.events.next()
	if !ok {
		return e, syscall.EAGAIN
	}
	return e, fine
}

// A source is an object that asynchronous events are about.
type source struct {
	context *Context
	token   uint64

	mu   sync.Mutex
	gone bool
	lost bool // it is a CQ that has overflowed
}

// raise adds an event, as long as the object is there, and unless the same waits for the program already: one that
// fetches none has few for each object, however often that is connected. A CQ overflows once.
func (s *source) raise(event uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.lost && event == asyncCQError {
		return
	}
	s.lost = s.lost || event == asyncCQError
	e := AsyncEvent{event, s.token}
	if !s.context.events.has(func(waits AsyncEvent) bool { return waits == e }) {
		s.context.events.push(e)
	}
}

// overflowed reports whether it is a CQ of which the program was told that.
func (s *source) overflowed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// live is the token, or 0 if the object is destroyed.
func (s *source) live() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0
	}
	return s.token
}

// silence is for an object that is destroyed: its events that nobody has fetched are dropped, and no more come.
func (s *source) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.context.events.remove(func(e AsyncEvent) bool { return e.Token == s.token })
}

// made is what a function that creates returns.
func made(h Handle) (Handle, syscall.Errno) {
	if h == 0 {
		return 0, syscall.ENOMEM
	}
	return h, fine
}

// watch passes on what happens to objects as a whole.
func (d *Device) watch() {
	for {
		e, err := d.rnic.NextEvent(context.Background())
		if err != nil {
			return
		}
		d.dispatch(e)
	}
}

func (d *Device) dispatch(e iwarp.Event) {
	switch e.Kind {
	case iwarp.EventHalfClosed:
		if qp := qpOf(e.QP); qp != nil {
			qp.hungUp()
		}
	case iwarp.EventTerminateReceived, iwarp.EventConnectionLost:
		if qp := qpOf(e.QP); qp != nil && !qp.meets() { // with RoCE, the end of the peer is no event
			qp.raise(asyncQPFatal)
		}
	case iwarp.EventTerminateSent, iwarp.EventBadClose, iwarp.EventQPFatal:
		if qp := qpOf(e.QP); qp != nil && (!qp.meets() || qp.broken(e.QP)) {
			qp.lacksReceive(e.Err)
			qp.raise(asyncQPFatal)
		}
	case iwarp.EventEstablished:
		if qp := qpOf(e.QP); qp != nil && e.QP.State() == iwarp.StateRTS {
			qp.heard()
		}
	case iwarp.EventLastWQE:
		if qp := qpOf(e.QP); qp != nil {
			qp.tookLast()
		}
	case iwarp.EventSRQLimit:
		if s, ok := d.sources.Load(e.SRQ); ok {
			s.(*source).raise(asyncSRQLimit)
		}
	case iwarp.EventCQOverflow:
		if s, ok := d.sources.Load(e.CQ); ok {
			s.(*source).raise(asyncCQError)
		}
	}
}

// qpOf returns the QP of the program's that one of package iwarp belongs to, or nil.
func qpOf(qp *iwarp.QP) *QP {
	if qp == nil {
		return nil
	}
	q, _ := qp.UserData().(*QP)
	return q
}
