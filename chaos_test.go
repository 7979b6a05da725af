package iwarp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// The chaos soak is set by the environment.
const (
	chaosTime = "IWARP_CHAOS"      // how long it goes on, such as 60s
	chaosSeed = "IWARP_CHAOS_SEED" // its seed, and the only conversation to have: 17 or 17/4
)

const (
	chaosBriefly = 250 * time.Millisecond
	chaosAtOnce  = 12       // conversations
	chaosRoom    = 64 << 10 // bytes of a receive in the SRQ
	chaosSRQDeep = 512
	chaosMany    = 200 // conversations, of which a share of each kind can be expected
)

// A chaos has many conversations on two RNICs.
type chaos struct {
	t        *testing.T
	seed     uint64
	only     int // the only conversation, or -1
	ini, res *iwarp.RNIC
	srqPD    *iwarp.PD
	srq      *chaosSRQ

	mu  sync.Mutex
	sum chaosSum
}

// A chaosSum counts what all conversations did.
type chaosSum struct {
	talks, up, harmed, strict, posted, sent, received, terminates int
}

// A chaosSRQ keeps an SRQ full.
type chaosSRQ struct {
	*iwarp.SRQ
	mr *iwarp.MR
}

func (s *chaosSRQ) post(id uint64) error {
	return s.PostRecv(&iwarp.RecvWR{ID: id, SGL: []iwarp.SGE{s.mr.Slice(int(id)*chaosRoom, chaosRoom)}})
}

// TestChaos has conversations over paths that delay, lose, damage and reset, between ends
// that close and abort while they work, and counts every message: what was completed with
// success before both ends closed in order has been delivered, once, in order and with the
// right bytes; whatever is delivered is a beginning of what was posted; nothing follows a
// Terminate; all errors say that the connection is gone; and nothing is left over.
//
// It is brief unless IWARP_CHAOS says for how long.
//
// Proves D30, D33, P38, R08, S05.
func TestChaos(t *testing.T) {
	rig.Until(t, func() bool { return goroutines() == 0 }, "the end of what other tests have left")
	descriptors := openDescriptors()
	c := newChaos(t)
	long := chaosBriefly
	if s := os.Getenv(chaosTime); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(long)
	var next atomic.Int64
	var all sync.WaitGroup
	for range chaosAtOnce {
		all.Go(func() {
			for first := true; first || time.Now().Before(end) && !t.Failed(); first = false {
				n := int(next.Add(1))
				if c.only >= 0 {
					n = c.only
				}
				c.talk(n)
			}
		})
	}
	all.Wait()
	c.leftovers()
	t.Logf("seed %d: %+v", c.seed, c.sum)
	if s := c.sum; c.only < 0 && s.talks >= chaosMany &&
		(s.up < s.talks/2 || s.strict < s.talks/20 || s.harmed < s.talks/20) {
		t.Errorf("too few of the conversations came up, could be judged strictly, or were harmed: %+v", s)
	}
	rig.Until(t, func() bool { return goroutines() == 0 }, "the end of all goroutines")
	rig.Until(t, func() bool { return openDescriptors() <= descriptors }, "the closing of all descriptors")
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{t: t, seed: rand.Uint64() >> 32, only: -1, ini: rig.NewRNIC(t, iwarp.RNICConfig{}),
		res: rig.NewRNIC(t, iwarp.RNICConfig{})}
	if s := os.Getenv(chaosSeed); s != "" {
		seed, only, one := strings.Cut(s, "/")
		var err, err2 error
		if c.seed, err = strconv.ParseUint(seed, 10, 64); one {
			c.only, err2 = strconv.Atoi(only)
		}
		if err != nil || err2 != nil {
			t.Fatalf("%s=%s", chaosSeed, s)
		}
	}
	c.srqPD = rig.NewPD(t, c.res)
	srq, err := c.srqPD.CreateSRQ(iwarp.SRQConfig{Depth: chaosSRQDeep})
	rig.Must(t, err)
	mr, err := c.srqPD.Register(make([]byte, chaosSRQDeep*chaosRoom), iwarp.LocalWrite)
	rig.Must(t, err)
	c.srq = &chaosSRQ{srq, mr}
	for i := range uint64(chaosSRQDeep) {
		rig.Must(t, c.srq.post(i))
	}
	return c
}

// A chaosTalk is one conversation.
type chaosTalk struct {
	n      int
	ends   [2]*chaosEnd
	relay  *chaosRelay
	reads  bool
	offer  mpa.Offer
	path   [2]time.Duration
	mishap mishap
}

// newTalk makes a conversation up.
func (c *chaos) newTalk(n int) *chaosTalk {
	r := rand.New(rand.NewPCG(c.seed, uint64(n)))
	talk := &chaosTalk{n: n, reads: r.IntN(2) > 0, mishap: newMishap(r)}
	talk.offer = []mpa.Offer{{}, {Markers: true}, {Dialect: mpa.DialectRFC5044}, {RTR: mpa.RTRRead}}[r.IntN(4)]
	for i := range talk.path {
		talk.path[i] = time.Duration(r.IntN(1 + r.IntN(int(150*time.Millisecond))))
	}
	room := []int{64, 4 << 10, 16 << 10, 64 << 10}[r.IntN(4)]
	for i := range talk.ends {
		talk.ends[i] = &chaosEnd{chaosScript: newChaosScript(r, room, talk.reads), talk: uint64(n),
			dir: byte(i), room: room}
	}
	talk.ends[0].peer, talk.ends[1].peer = talk.ends[1], talk.ends[0]
	if r.IntN(2) > 0 {
		talk.ends[1].srq = c.srq
	}
	return talk
}

func (k *chaosTalk) String() string {
	return fmt.Sprintf("conversation %d: Initiator %v; Responder %v; %v; delays %v; reads %t; SRQ %t; offer %v",
		k.n, k.ends[0].chaosScript, k.ends[1].chaosScript, k.mishap, k.path, k.reads, k.ends[1].srq != nil, k.offer)
}

// talk has one conversation and judges it.
func (c *chaos) talk(n int) {
	k := c.newTalk(n)
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*rig.Soon)
	defer cancel()
	up, err := c.connect(ctx, k)
	if up {
		var both sync.WaitGroup
		for _, e := range k.ends {
			both.Go(func() { e.run(ctx) })
		}
		both.Wait()
	} else {
		for _, e := range k.ends {
			if e.qp != nil {
				_ = e.qp.Abort()
			}
		}
	}
	rig.Wait(c.t, k.relay.done, "the relay's end")
	c.judge(k, up, err)
	for _, e := range k.ends {
		if err := e.release(); err != nil {
			c.t.Errorf("seed %d, %v: left over: %v", c.seed, k, err)
		}
	}
}

// patience of an end, which is short where the path may end without a word.
func (k *chaosTalk) patience() (d time.Duration) {
	if k.mishap.fault == faultNone {
		return 3 * rig.Soon
	}
	return 700 * time.Millisecond
}

// impatient reports whether an end has run out of a patience that is short: on a busy machine that may be before the
// mishap.
func (k *chaosTalk) impatient(err error) bool {
	for _, e := range k.ends {
		if e.qp != nil {
			err = errors.Join(err, e.qp.Err(), e.closed)
		}
	}
	return k.mishap.fault != faultNone && (errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded))
}

// startupPatience is that of the startup, which only a mishap within its frames can keep from
// its end.
func (k *chaosTalk) startupPatience() time.Duration {
	if k.mishap.at > startupBytes {
		return 3 * rig.Soon
	}
	return k.patience()
}

// connect brings a conversation's connection up, if the relay lets it.
func (c *chaos) connect(ctx context.Context, k *chaosTalk) (up bool, err error) {
	ini, res := k.ends[0], k.ends[1]
	resPD := c.srqPD
	resQP := iwarp.QPConfig{SendDepth: 200, RecvDepth: 64, CloseTimeout: k.patience(), CloseLimit: 3 * rig.Soon}
	iniQP := resQP
	if res.srq == nil {
		resPD = rig.NewPD(c.t, c.res)
	} else { // whose domain the QP must have
		var err error
		if res.cq, err = c.res.CreateCQ(1024); err != nil {
			c.t.Error(err)
			return false, err
		}
		resQP.SRQ, resQP.SendCQ = res.srq.SRQ, res.cq
	}
	if err := cmp.Or(ini.prepare(rig.NewPD(c.t, c.ini)), res.prepare(resPD)); err != nil {
		c.t.Error(err)
		return false, err
	}
	ln, err := (&iwarp.ListenConfig{
		PD: resPD, RequestTimeout: k.startupPatience(), RTRTimeout: k.startupPatience(),
	}).Listen(
		ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Error(err)
		return false, err
	}
	defer ln.Close()
	k.relay = newChaosRelay(c.t, ln.Addr(), k.path, k.mishap)
	ctx, cancel := context.WithTimeout(ctx, k.startupPatience())
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			res.qp, err = req.Accept(ctx, iwarp.AcceptConfig{QP: resQP, Prepare: res.receives})
		}
		accepted <- err
	}()
	d := iwarp.Dialer{PD: ini.pd, QP: iniQP, Prepare: ini.receives, MPA: k.offer, NoFallback: true,
		Timeout: k.startupPatience()}
	var dialErr error
	if ini.qp, dialErr = d.Dial(ctx, "tcp", k.relay.ln.Addr().String()); dialErr != nil {
		cancel()
	}
	acceptErr := <-accepted
	return dialErr == nil && acceptErr == nil, fmt.Errorf("dial: %w; accept: %w", dialErr, acceptErr)
}

// judge compares what the two ends have with what must be.
func (c *chaos) judge(k *chaosTalk, up bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.talks++
	bad := func(format string, args ...any) {
		c.t.Errorf("seed %d, %v: %s", c.seed, k, fmt.Sprintf(format, args...))
	}
	hit := k.relay.hit.Load()
	harmed := hit || k.impatient(err)
	if harmed {
		c.sum.harmed++
	}
	if !up {
		if !harmed {
			bad("no connection: %v", err)
		}
		return
	}
	c.sum.up++
	strict := !harmed
	for i, e := range k.ends {
		for _, err := range e.faults {
			bad("end %d: %v", i, err)
		}
		n, err := k.relay.terminates(i)
		if err != nil {
			bad("end %d has sent: %v", i, err)
		}
		c.sum.posted += e.posted
		c.sum.sent += e.sent
		c.sum.received += e.received
		c.sum.terminates += n
		if e.received > e.peer.posted {
			bad("end %d: %d messages of %d", i, e.received, e.peer.posted)
		}
		if !harmed && e.leave != leaveAbort && e.leave != leaveTerminate && e.peer.leave != leaveAbort &&
			e.received < e.peer.sent {
			bad("end %d (%v, %v): %d messages were delivered, and %d completed with success; the peer: %v, %v",
				i, e.qp.State(), e.qp.Err(), e.received, e.peer.sent, e.peer.qp.State(), e.peer.qp.Err())
		}
		strict = strict && e.leave.orderly()
		if k.mishap.fault == faultCorrupt && hit && k.mishap.lane == 1-i && e.qp.State() == iwarp.StateClosed {
			bad("end %d closed in order after a byte that was not the peer's", i)
		}
	}
	if !strict || k.reads {
		return
	}
	c.sum.strict++
	for i, e := range k.ends {
		if errors.Is(e.closed, iwarp.ErrAwaitingInitiator) && e.sent == 0 &&
			e.peer.received == 0 && e.flushed >= e.posted {
			// a Responder that one of the two has closed before the Initiator has let it send: all of its own will
			continue
		}
		if e.closed != nil || e.qp.State() != iwarp.StateClosed || e.sent != e.posted || e.peer.received != e.posted {
			bad("end %d: Close: %v; state %v: %v; %d posted, %d sent, %d delivered",
				i, e.closed, e.qp.State(), e.qp.Err(), e.posted, e.sent, e.peer.received)
		}
	}
}

// leftovers looks for what should have been given back.
func (c *chaos) leftovers() {
	rig.Until(c.t, func() bool { return c.srq.Query().Receives == chaosSRQDeep }, "the slots of the SRQ")
	rig.Should(c.t, c.srq.Close())
	_, _ = c.srq.mr.Deregister(), c.srqPD.Close()
	for name, r := range map[string]*iwarp.RNIC{"Initiators": c.ini, "Responders": c.res} {
		if s := r.Stats(); s.PDs+s.QPs+s.CQs+s.SRQs+s.MRs > 0 {
			c.t.Errorf("seed %d: left over at the %s': %d PDs, %d QPs, %d CQs, %d SRQs, %d MRs",
				c.seed, name, s.PDs, s.QPs, s.CQs, s.SRQs, s.MRs)
		}
	}
}

// openDescriptors counts the descriptors of the process, where the system tells.
func openDescriptors() int {
	if runtime.GOOS != "linux" {
		return 0
	}
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}
