package host_test

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// TestDialerBounds takes settings up to their bounds, and refuses those beyond before anybody is dialed.
func TestDialerBounds(t *testing.T) {
	t.Parallel()
	const longest = math.MaxUint32 * time.Millisecond
	for _, x := range []struct {
		name string
		ok   bool
		set  func(d *host.Dialer) (subsystem string)
	}{
		{"one queue", true, func(d *host.Dialer) string { d.Queues = 1; return nqn }},
		{"all queues", true, func(d *host.Dialer) string { d.Queues = 65535; return nqn }},
		{"queues below", false, func(d *host.Dialer) string { d.Queues = -1; return nqn }},
		{"queues above", false, func(d *host.Dialer) string { d.Queues = 65536; return nqn }},
		{"two entries", true, func(d *host.Dialer) string { d.Depth = 2; return nqn }},
		{"all entries", true, func(d *host.Dialer) string { d.Depth = host.MaxDepth; return nqn }},
		{"one entry", false, func(d *host.Dialer) string { d.Depth = 1; return nqn }},
		{"entries above", false, func(d *host.Dialer) string { d.Depth = host.MaxDepth + 1; return nqn }},
		{"a negative time", false, func(d *host.Dialer) string { d.Timeout = -1; return nqn }},
		{"a negative pause", false, func(d *host.Dialer) string { d.Delay = -1; return nqn }},
		{"the longest Keep Alive", true, func(d *host.Dialer) string { d.KeepAlive = longest; return nqn }},
		{"a longer one", false, func(d *host.Dialer) string { d.KeepAlive = longest + time.Millisecond; return nqn }},
		{"no subsystem", false, func(*host.Dialer) string { return "" }},
		{"the longest name", true, func(*host.Dialer) string { return "nqn." + strings.Repeat("x", capsule.MaxNQN-4) }},
		{"a longer name", false, func(*host.Dialer) string { return "nqn." + strings.Repeat("x", capsule.MaxNQN-3) }},
	} {
		p := newPeer(t).startServing()
		d := p.dialer()
		c, err := d.Dial(testrig.Within(t), "tcp", "target:4420", x.set(d))
		switch {
		case !x.ok && (!errors.Is(err, iwarp.ErrInvalid) || p.connections() > 0):
			t.Errorf("%s: %v, after %d connections", x.name, err, p.connections())
		case x.ok && err != nil:
			t.Errorf("%s: %v", x.name, err)
		case x.ok:
			testrig.Must(t, c.Close())
		}
	}
}

// TestWhoWeAre has a Dialer without an identifier take a random one, of version 4 (RFC 9562), another each time, and be
// named after it. One that is given stays.
func TestWhoWeAre(t *testing.T) {
	t.Parallel()
	p := newPeer(t).startServing()
	seen := make(map[[16]byte]bool)
	for range 8 {
		testrig.Must(t, p.dial(p.dialer()).Close())
	}
	own := p.dialer()
	own.HostID = [16]byte{1, 2}
	testrig.Must(t, p.dial(own).Close())
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.connects {
		id := c.HostID
		if id == own.HostID {
			continue
		}
		if seen[id] = true; id[6]>>4 != 4 || id[8]>>6 != 2 {
			t.Errorf("connection %d: %x is no UUID of version 4", i, id)
		}
		if !strings.HasPrefix(c.HostNQN, "nqn.2014-08.org.nvmexpress:uuid:") || strings.Count(c.HostNQN, "-") != 5 {
			t.Errorf("it is called %s", c.HostNQN)
		}
	}
	if last := p.connects[len(p.connects)-1].HostID; len(seen) != 8 || last != own.HostID {
		t.Errorf("%d identifiers of 8 hosts, and %x", len(seen), last)
	}
}

// TestInCapsule has data travel in the capsule as far as the controller has room for them there, and not at all where
// it takes none there.
func TestInCapsule(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name   string
		set    func(c *capsule.IdentifyController)
		inside bool
	}{
		{"just room for a block", func(c *capsule.IdentifyController) { c.CommandLen = (64 + 512) / 16 }, true},
		{"room for less", func(c *capsule.IdentifyController) { c.CommandLen = (64+512)/16 - 1 }, false},
		{"room for a command", func(c *capsule.IdentifyController) { c.CommandLen = 64 / 16 }, false},
		{"no such descriptors", func(c *capsule.IdentifyController) { c.SGLs &^= capsule.SGLOffsetSupported }, false},
		{"data elsewhere", func(c *capsule.IdentifyController) { c.DataOffset = 1 }, false},
	} {
		p := newPeer(t)
		x.set(&p.controller)
		c, n := p.startServing().open(p.dialer())
		_, err := n.WriteAt(make([]byte, 512), 0)
		testrig.Must(t, err)
		want := capsule.SGLKeyedInvalidate
		if x.inside {
			want = capsule.SGLOffset
		}
		if got := p.commands(capsule.OpWrite)[0].SGL.Type; got != want {
			t.Errorf("%s: %v, want %v", x.name, got, want)
		}
		testrig.Must(t, c.Close())
	}
}

// TestPieces has a transfer be as many commands as the controller's bound, and ours of 1 MiB, make it.
func TestPieces(t *testing.T) {
	t.Parallel()
	for bound, want := range map[uint8]int{0: 1, 1: 128, 7: 2, 8: 1, 9: 1, 255: 1} {
		p := newPeer(t)
		p.controller.MaxData = bound
		c, n := p.startServing().open(p.dialer())
		_, err := n.WriteAt(random(1<<20, 3), 0)
		testrig.Must(t, err)
		if got := len(p.commands(capsule.OpWrite)); got != want {
			t.Errorf("a bound of 2^%d pages: %d commands, want %d", bound, got, want)
		}
		testrig.Must(t, c.Close())
	}
}

// TestOfferDefaults has connections be of the client-server model, with room for 128 RDMA Reads, unless the user asks
// for another or has no depths to give.
func TestOfferDefaults(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		offer        mpa.Offer
		clientServer bool
		ird          mpa.Depth // at this end
	}{
		{mpa.Offer{}, true, 128},
		{mpa.Offer{IRD: 4}, true, 4},
		{mpa.Offer{IRD: 4, ORD: 2, RTR: mpa.RTRWrite}, false, 4},
	} {
		p := newPeer(t).startServing()
		d := p.dialer()
		d.RDMA.MPA = x.offer
		c := p.dial(d)
		p.mu.Lock()
		got := p.qps[0].qp.Negotiated()
		p.mu.Unlock()
		if got.PeerToPeer == x.clientServer || got.PeerIRD != x.ird {
			t.Errorf("%+v: %+v", x.offer, got)
		}
		testrig.Must(t, c.Close())
	}
}

// TestErrorTexts tells of a subsystem that is not there, and of nothing else that it is one; and of a loss both what
// ended the connections and what is in the way of others.
func TestErrorTexts(t *testing.T) {
	const hint = "the target has no subsystem of that name"
	at := capsule.ConnectOffset(capsule.OffsetSubsystem, true)
	for _, e := range []*host.StatusError{
		{Command: "Connect", Status: capsule.InvalidParameter | capsule.DNR, Result: at},
		{Command: "Connect", Status: capsule.InvalidParameter, Result: at + 1},
		{Command: "Connect", Status: capsule.InternalError, Result: at},
	} {
		want := e.Status&^capsule.DNR == capsule.InvalidParameter && e.Result == at
		if got := e.Error(); strings.Contains(got, hint) != want {
			t.Errorf("%v, result %#x: %s", e.Status, e.Result, got)
		}
	}
	cause, again := errors.New("the cause"), errors.New("the way back")
	if got := (&host.LostError{Cause: cause}).Error(); got != "nvme: the controller was lost: the cause" {
		t.Error(got)
	}
	if got := (&host.LostError{Cause: cause, Reconnect: again}).Error(); !strings.HasSuffix(got,
		"lost (the cause), and there is no new one: the way back") {
		t.Error(got)
	}
}

// TestEdges reads and changes just up to the end, and refuses what lies across it, beyond it or before the beginning,
// however far.
func TestEdges(t *testing.T) {
	t.Parallel()
	p := newPeer(t).startServing()
	_, n := p.open(p.dialer())
	end := n.Size()
	for _, x := range []struct {
		off, length int64
		want        error
	}{
		{end - 512, 512, nil},
		{end, 0, nil},
		{0, end, nil},
		{end, 512, host.ErrRange},
		{end + 512, 0, host.ErrRange},
		{math.MaxInt64 - 511, 512, host.ErrRange},
		{512, math.MaxInt64 - 511, host.ErrRange},
		{512, -512, host.ErrUnaligned},
		{-512, 512, host.ErrUnaligned},
		{100, 512, host.ErrUnaligned},
		{512, 100, host.ErrUnaligned},
	} {
		if err := n.WriteZeroes(t.Context(), x.off, x.length); !errors.Is(err, x.want) {
			t.Errorf("%d bytes at %d: %v, want %v", x.length, x.off, err, x.want)
		}
	}
	for _, off := range []int64{end, end + 1, math.MaxInt64} {
		if got, err := n.ReadAt(make([]byte, 512), off); got != 0 || err != io.EOF {
			t.Errorf("Read at %d: %d, %v", off, got, err)
		}
	}
	if got, err := n.ReadAt(make([]byte, 512), end-512); got != 512 || err != nil {
		t.Errorf("the last block: %d, %v", got, err)
	}
}

// TestLongSweep has more blocks than one command takes go in several, and the error name where the one stands that
// failed.
func TestLongSweep(t *testing.T) {
	t.Parallel()
	const blocks = 1<<16 + 100
	p := newPeer(t)
	p.disk, p.namespace.Size = make([]byte, blocks<<diskShift), blocks
	fail := false
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		if fail && c.Opcode == capsule.OpWriteZeroes && c.IO().LBA > 0 {
			a.Status = capsule.InternalError | capsule.DNR
		}
		return true
	}
	_, n := p.startServing().open(p.dialer())
	testrig.Must(t, n.WriteZeroes(t.Context(), 0, n.Size()))
	sent := p.commands(capsule.OpWriteZeroes)
	if len(sent) != 2 || sent[0].IO().Blocks != 1<<16 || sent[1].IO().LBA != 1<<16 || sent[1].IO().Blocks != 100 {
		t.Errorf("%d commands: %v", len(sent), sent)
	}
	p.mu.Lock()
	fail = true
	p.mu.Unlock()
	if err := n.WriteZeroes(t.Context(), 0, n.Size()); err == nil ||
		!strings.Contains(err.Error(), " at 33554432 of namespace 1") {
		t.Errorf("the second fails: %v", err)
	}
}

// TestPiecesStop has a transfer whose pieces fail begin no more than were under way.
func TestPiecesStop(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.controller.MaxData = 1
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		if q.id > 0 && c.Opcode == capsule.OpWrite {
			a.Status = capsule.InternalError | capsule.DNR
		}
		return true
	}
	_, n := p.startServing().open(p.dialer())
	if done, err := n.WriteAt(make([]byte, 1<<20), 0); done != 0 || err == nil {
		t.Errorf("%d bytes, %v", done, err)
	}
	if sent := len(p.commands(capsule.OpWrite)); sent > 16 {
		t.Errorf("%d of 128 pieces were begun", sent)
	}
}

// TestDialGivesUp has a target go away while a controller is brought up: Dial tries for as long as there is patience,
// and says what was lost and what is in the way; and, if it is the context that ends, that as well.
func TestDialGivesUp(t *testing.T) {
	t.Run("patience", func(t *testing.T) { inBubble(t, func(t *testing.T) { dialGivesUp(t, time.Hour, nil) }) })
	t.Run("context", func(t *testing.T) {
		inBubble(t, func(t *testing.T) { dialGivesUp(t, 2*time.Second, context.DeadlineExceeded) })
	})
}

// dialGivesUp dials for a time, and wants an error that has another one in it, if that is not nil.
func dialGivesUp(t *testing.T, bound time.Duration, want error) {
	p := newPeer(t)
	p.spoil = func(*peerQueue, *capsule.Command, *answer) bool {
		_ = p.ln.Close()
		p.cut()
		return false
	}
	d := p.startServing().dialer()
	d.Patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	_, err := d.Dial(ctx, "tcp", "target:4420", nqn)
	lost, ok := errors.AsType[*host.LostError](err)
	if !ok || lost.Cause == nil || lost.Reconnect == nil || strings.Contains(err.Error(), "%!") {
		t.Errorf("%v", err)
	}
	if errors.Is(err, context.DeadlineExceeded) != (want != nil) {
		t.Errorf("%v, which is to have %v in it", err, want)
	}
}
