package mpa_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// streaming is what the responder's consumer sends after a rejection that leaves TCP open.
const streaming = "back in streaming mode"

// node is a state of a connection that the search has come to, and how.
type node struct {
	*virtual
	// deaf has the ends that got a FIN before all that the other end sent, by name.
	deaf     map[string]bool
	silent   *end // its host is gone: neither bytes nor a FIN arrive from it any more
	patience patience
	faults   bool
	from     *node
	by       string // the step from there
}

// copyMachine returns a machine that goes on by itself.
func copyMachine(m machine) machine {
	switch m := m.(type) {
	case *mpa.Initiator:
		return m.Copy()
	case *mpa.Responder:
		return m.Copy()
	}
	return m.(interface{ copy() machine }).copy()
}

func (e *end) copy() *end {
	c := *e
	c.m = copyMachine(e.m)
	c.sent, c.inbox = bytes.Clone(e.sent), bytes.Clone(e.inbox)
	return &c
}

// after returns the state after a step, and leaves n as it is.
func (n *node) after(by string, fault bool, step func(n *node)) *node {
	v := *n.virtual
	v.i, v.r = n.i.copy(), n.r.copy()
	next := &node{virtual: &v, deaf: maps.Clone(n.deaf), patience: n.patience,
		faults: n.faults || fault, from: n, by: by}
	next.silent = map[*end]*end{n.i: next.i, n.r: next.r}[n.silent]
	step(next)
	for name, e := range next.ends() {
		if next.deaf[name] || next.silent != nil {
			next.other(e).sent = nil
		}
	}
	return next
}

func (n *node) ends() map[string]*end { return map[string]*end{"Initiator": n.i, "Responder": n.r} }

func (n *node) other(e *end) *end {
	if e == n.i {
		return n.r
	}
	return n.i
}

// key tells states apart, by value.
func (n *node) key() [sha256.Size]byte {
	b := make([]byte, 0, 2048)
	for _, e := range []*end{n.i, n.r} {
		if e == n.silent {
			b = append(b, "silent|"...)
			continue
		}
		b = mpa.AppendState(b, e.m)
		b = fmt.Appendf(b, "%d %x %x %v %v %v %v %v %v|",
			len(e.sent), e.sent, e.inbox, e.fin, e.finSeen, e.open, e.opened, e.over, e.err != nil)
	}
	b = fmt.Appendf(b, "%v %v %v %v %v %v", n.decided, n.rejected, n.faults, n.now,
		n.deaf["Initiator"], n.deaf["Responder"])
	return sha256.Sum256(b)
}

// path tells how the search came here.
func (n *node) path() string {
	var steps []string
	for at := n; at.from != nil; at = at.from {
		steps = append(steps, at.by)
	}
	slices.Reverse(steps)
	return strings.Join(steps, ", ")
}

// next returns the states that can follow: bytes or a FIN arrive, the consumer decides,
// time passes, or there is a fault.
func (n *node) next(bytewise bool) (all []*node) {
	for _, step := range n.steps() {
		all = append(all, n.after(step, false, func(n *node) { n.takeStep(step, 1<<20) }))
		if bytewise && strings.HasPrefix(step, "to ") {
			all = append(all, n.after("1 byte "+step, false, func(n *node) { n.takeStep(step, 1) }))
		}
	}
	if len(all) == 0 {
		if _, waits := n.virtual.next(); waits {
			all = append(all, n.after("time", false, func(n *node) { d, _ := n.virtual.next(); n.elapse(max(d, 0)) }))
		}
	}
	if d, waits := n.virtual.next(); waits && len(all) > 0 && bytewise && !n.faults && d > time.Nanosecond {
		all = append(all, n.after("a pause", true, func(n *node) { n.elapse(d - time.Nanosecond) }))
	}
	for name := range n.ends() {
		all = append(all, n.faulty(name)...)
	}
	return all
}

// takeStep takes a step, and has the consumer go on in streaming mode after a rejection.
func (n *node) takeStep(step string, size int) {
	n.do(step, size)
	if step == "decision" && n.rejected && n.responder().KeepsTCP() {
		n.r.sent = append(n.r.sent, streaming...)
	}
}

// faulty returns what follows faults at one end: what is on its way to it is lost and a FIN
// comes in its place, it falls silent, its deadline passes, or its caller gives up.
func (n *node) faulty(name string) (all []*node) {
	e := n.ends()[name]
	if e.over {
		return nil
	}
	if n.silent == nil {
		all = append(all, n.after("silence of "+name, true, func(n *node) { n.silence(n.ends()[name]) }))
	}
	if !e.finSeen {
		all = append(all, n.after("cut to "+name, true, func(n *node) {
			n.deaf[name] = true
			n.close(n.ends()[name])
		}))
	}
	if !e.m.Deadline().IsZero() {
		all = append(all, n.after("deadline of "+name, true, func(n *node) {
			e := n.ends()[name]
			n.fail(e, e.m.HandleTimeout(e.m.Deadline()))
		}))
	}
	if !e.m.Done() {
		all = append(all, n.after(name+" gives up", true, func(n *node) {
			e := n.ends()[name]
			n.fail(e, e.m.(interface {
				GiveUp(now time.Time, cause error) error
			}).GiveUp(n.now, context.DeadlineExceeded))
		}))
	}
	return all
}

// silence has the host of an end be gone.
func (n *node) silence(e *end) { n.silent, e.over, e.fin = e, true, false }

// fail ends one end with the error of a wait that was in vain.
func (n *node) fail(e *end, err error) {
	var s *mpa.StartupError
	if !errors.As(err, &s) || !s.Timeout() || s.Err.Hint == "" {
		n.blame("a wait ended with %v", err)
		return
	}
	e.fail(err)
}

// wrongNow returns what must not be in any state, or "".
func (n *node) wrongNow() string {
	if n.wrong != nil {
		return n.wrong.Error()
	}
	for name, e := range n.ends() {
		all := n.other(e).first
		switch {
		case n.i.m.Negotiated().TerminateCode != 0 && e == n.r:
			all = terminate
		case n.rejected:
			all = streaming
		}
		_, rejected := e.err.(*mpa.RejectError)
		if late := n.patience.broken(n, name); late != "" {
			return late
		}
		// Whoever is in Full Operation, or back in streaming mode, has all of that from its
		// first byte on, and nothing of the startup.
		if (e.open || rejected) && !strings.HasPrefix(all, string(e.inbox)) {
			return fmt.Sprintf("the %s has got %q, and the other end sent %q", name, e.inbox, all)
		}
	}
	return ""
}

// hung returns an end that waits, in a state in which nothing can happen any more.
func (n *node) hung() string {
	for name, e := range n.ends() {
		if n.waits(name) && n.patience.of(e) >= 0 {
			return name
		}
	}
	return ""
}

// waits reports whether an end waits for the other, and not for its own consumer.
func (n *node) waits(name string) bool {
	e := n.ends()[name]
	r, responds := e.m.(*mpa.Responder)
	return !e.over && !e.open && !(responds && r.Request() != nil && !n.decided)
}

// lost returns what is missing at the end of a connection, or "".
func (n *node) lost() string {
	for name, e := range n.ends() {
		switch _, rejected := e.err.(*mpa.RejectError); {
		case n.deaf[name], n.silent != nil:
		case rejected && n.rejected && n.responder().KeepsTCP() && !n.r.fin && string(e.inbox) != streaming:
			return fmt.Sprintf("the %s was rejected and has %q", name, e.inbox)
		case e.open && !e.over && !n.other(e).over && !e.up(n.other(e).first):
			return fmt.Sprintf("the %s has %q", name, e.inbox)
		case e.open && !e.over && n.other(e).over && !e.finSeen:
			return fmt.Sprintf("the %s is up and does not know that the other end is not", name)
		}
	}
	return ""
}

// disagreement compares what both ends have put into effect where both are up.
func (n *node) disagreement() string {
	if !n.i.open || !n.r.open {
		return ""
	}
	i, r := n.i.m.Negotiated(), n.r.m.Negotiated()
	return cmp.Diff(seen(&i), seen(mirrored(&r)))
}

// seen is what both ends have to agree on, from the Initiator's side.
func seen(n *mpa.Negotiated) map[string]any {
	return map[string]any{
		"role": n.Role, "dialect": n.Dialect, "revisions": [2]uint8{n.Revision, n.PeerRevision},
		"versions": [2]uint8{n.DDPVersion, n.RDMAPVersion}, "markers": [2]bool{n.MarkersReceive, n.MarkersSend},
		"CRC": n.CRC, "enhanced": n.Enhanced, "peer-to-peer": n.PeerToPeer,
		"RTR offered and answered": [2]mpa.RTR{n.OfferedRTR, n.AnsweredRTR},
	}
}

// mirrored is a Responder's Negotiated from the Initiator's side.
func mirrored(n *mpa.Negotiated) *mpa.Negotiated {
	m := *n
	m.Role = mpa.RoleInitiator
	if n.Role == mpa.RoleInitiator {
		m.Role = mpa.RoleResponder
	}
	m.Revision, m.PeerRevision = n.PeerRevision, n.Revision
	m.MarkersReceive, m.MarkersSend = n.MarkersSend, n.MarkersReceive
	return &m
}

// A search goes through all states of one connection, breadth-first.
type search struct {
	class    *class
	bytewise bool
	seen     map[[sha256.Size]byte]bool
	queue    []*node
	finals   []*node // where nothing can happen any more
	ends     []*node // those without a fault
	wrong    []string
}

const enough = 5 // mistakes of one class

func (s *search) add(n *node) {
	if k := n.key(); !s.seen[k] {
		s.seen[k] = true
		s.queue = append(s.queue, n)
	}
}

func (s *search) blame(n *node, wrong string) {
	s.wrong = append(s.wrong, fmt.Sprintf("%s: %s: %v / %v, after %s", s.class.name, wrong, n.i.err, n.r.err, n.path()))
}

// run goes on from the beginning of a connection.
func (s *search) run(from *node) {
	s.seen = map[[sha256.Size]byte]bool{}
	s.add(from)
	for len(s.queue) > 0 && len(s.wrong) < enough {
		n := s.queue[0]
		s.queue = s.queue[1:]
		if wrong := n.wrongNow(); wrong != "" {
			s.blame(n, wrong)
			continue
		}
		for _, next := range n.next(s.bytewise) {
			s.add(next)
		}
		if _, waits := n.virtual.next(); !waits && len(n.steps()) == 0 {
			s.judgeFinal(n)
		}
	}
}

// judgeFinal judges a state in which nothing can happen any more.
func (s *search) judgeFinal(n *node) {
	s.finals = append(s.finals, n)
	if name := n.hung(); name != "" {
		s.blame(n, "the "+name+" waits for ever")
	}
	if lost := n.lost(); lost != "" {
		s.blame(n, lost)
	}
	if n.faults {
		return
	}
	s.ends = append(s.ends, n)
	if diff := n.disagreement(); diff != "" {
		s.blame(n, "the two ends disagree: "+diff)
	}
}

// inBytes have between them all that either end waits for.
var inBytes = []string{"enhanced", "Rtr frame", "messages"}

// TestExplore goes through all states of every class of pairs: bytes arrive one by one or
// together, connections are cut at any byte, deadlines pass and callers give up at any
// time, at one end or both. Without IWARP_ALL bytes go singly in the classes inBytes alone.
//
// Either end falls silent at any time, and time passes until just before a deadline. Whoever waits
// for the other end has a deadline, which neither silence nor single bytes put off.
// No end ever waits for what cannot come, no byte after the startup is lost or taken for a
// part of it, and both ends have the same connection or both know that they have none.
// Without a fault there is one outcome, whatever the order, which is what the documents
// say.
//
// Proves Q02, Q04, Q07, Q10-Q13, Q16, K02, K03, K07, T01-T05, N02-N06, E02-E08, E10, E13, E15, E16, F11, F14.
func TestExplore(t *testing.T) {
	t.Parallel() // with TestProduct6581
	states := 0
	for k := range classes {
		c := &classes[k]
		s := search{class: c, bytewise: testrig.Everything() || slices.Contains(inBytes, c.name)}
		s.run(c.firstState(t))
		states += len(s.seen)
		for _, wrong := range s.wrong {
			t.Error(wrong)
		}
		if len(s.ends) != 1 {
			t.Errorf("%s: %d outcomes without a fault", c.name, len(s.ends))
		}
		for _, end := range s.ends {
			c.judge(t, end.virtual, c.outcome())
		}
	}
	t.Logf("%d classes, %d states", len(classes), states)
}
