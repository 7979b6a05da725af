package target

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestReadDepth: as many Reads are under way as the host takes, the queue has commands, and we ever have.
func TestReadDepth(t *testing.T) {
	for _, c := range []struct {
		ird  mpa.Depth
		hsq  uint16
		want mpa.Depth
	}{{1, 31, 1}, {9, 31, 9}, {9, 8, 9}, {9, 3, 4}, {200, 1023, mostReads}, {mpa.NoNegotiation, 1023, readsAtOnce},
		{mpa.NoNegotiation, 3, 4}} {
		if got := readDepth(c.ird, c.hsq); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A disk of these says of itself what it is told to.
type zeroing struct {
	*Memory
	zeroes bool
}

func (z zeroing) DiscardsToZero() bool { return z.zeroes }

// TestTold: a host is told what a disk is, and no two have one name.
func TestTold(t *testing.T) {
	disk, err := NewMemory(1<<20, 512)
	testrig.Must(t, err)
	for _, c := range []struct {
		disk     Backend
		readOnly bool
		want     bool
	}{{zeroing{disk, true}, false, true}, {zeroing{disk, false}, true, false}, {struct{ Backend }{disk}, true, false}} {
		i := newNamespace("nqn", 1, Namespace{Backend: c.disk, ReadOnly: c.readOnly}).identify()
		if (i.Deallocated != 0) != c.want || (i.Attributes == capsule.NamespaceWriteProtected) != c.readOnly {
			t.Errorf("%+v: %+v", c, i)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		n, all := newNamespace("nqn", 1, Namespace{Backend: disk, Name: name}), identity("UUID", "nqn", name)
		all[6], all[8] = all[6]&0x0F|0x80, all[8]&0x3F|0x80 // version 8, and the variant of RFC 9562
		if n.uuid != all {
			t.Errorf("%s has UUID % x, not % x", name, n.uuid, all)
		}
	}
	if identity("a", "bc") == identity("ab", "c") {
		t.Error("names that are parted otherwise are one")
	}
}

// TestConfigure: disabling forgets what was set. A shutdown, and what does not change, does not.
func TestConfigure(t *testing.T) {
	c := &controller{t: &Target{cfg: Config{Queues: 7}}}
	want := func(what string, status capsule.ControllerStatus, events uint32) {
		t.Helper()
		if c.status != status || c.events != events {
			t.Errorf("%s: status %#x, events %#x", what, c.status, c.events)
		}
	}
	c.configure(capsule.ConfigurationEnabled)
	c.events = 5
	c.configure(capsule.ConfigurationEnabled)
	want("enabled again", capsule.StatusReady, 5)
	c.configure(capsule.ConfigurationEnabled.WithShutdown(capsule.ShutdownNormal))
	want("shut down", capsule.StatusReady|capsule.StatusShutdownDone, 5)
	c.configure(0)
	want("disabled", 0, 0)
	c.configure(capsule.Configuration(0).WithShutdown(capsule.ShutdownNormal))
	c.configure(0)
	want("disabled again", capsule.StatusShutdownDone, 0)
}

// TestListens: a host has half as much time again as it has asked for, and a second. Nobody listens after that was
// ended.
func TestListens(t *testing.T) {
	c := &controller{keepAlive: 10 * time.Second}
	if c.patience() != 16*time.Second {
		t.Errorf("patience of %v", c.patience())
	}
	c.listen()
	if !c.mu.TryLock() {
		t.Error("the lock stays")
	}
}

// TestNumbers: controllers are numbered from 1 to the last that there may be, and then from 1 again where one is free.
func TestNumbers(t *testing.T) {
	target, q := &Target{controllers: map[uint16]*controller{}}, ended(t)
	for _, want := range []uint16{1, 2, 3} {
		if c := target.newController(q, capsule.Connect{}, capsule.ConnectData{}); c.id != want {
			t.Errorf("controller %d is %d", want, c.id)
		}
	}
	target.lastID = lastController - 1
	delete(target.controllers, 2)
	for _, want := range []uint16{lastController, 2} {
		if c := target.newController(q, capsule.Connect{}, capsule.ConnectData{}); c.id != want {
			t.Errorf("controller %d is %d", want, c.id)
		}
	}
}

// TestLists: the list above a number has the numbers above it, and there are none above the last that there may be.
func TestLists(t *testing.T) {
	target := &Target{namespaces: []*namespace{{id: 1}, {id: 2}, {id: 3}}}
	for above, want := range map[uint32][]uint32{0: {1, 2, 3}, 1: {2, 3}, 3: nil, capsule.AllNamespaces - 2: nil} {
		if got, status := target.list(above); status != capsule.Success ||
			!bytes.Equal(got, capsule.AppendList(nil, want)) {
			t.Errorf("above %d: %v", above, status)
		}
	}
	if _, status := target.list(capsule.AllNamespaces - 1); status != invalidNamespace {
		t.Errorf("above all: %v", status)
	}
}

// TestDiscovers: a host is told the addresses of the Config, or else the one that it has come to, if it is one.
func TestDiscovers(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 4420}
	told := netip.MustParseAddrPort("192.0.2.1:4421")
	for _, c := range []struct {
		addresses []netip.AddrPort
		local     net.Addr
		want      []string
	}{{nil, here, []string{"192.0.2.9"}}, {[]netip.AddrPort{told}, here, []string{"192.0.2.1"}},
		{nil, &net.UnixAddr{Name: "here"}, nil}} {
		log := (&Target{cfg: Config{NQN: "nqn.x", Addresses: c.addresses}}).discoveryLog("host", c.local)
		if len(log) != 1024*(1+len(c.want)) {
			t.Fatalf("%+v: %d bytes", c, len(log))
		}
		for i, want := range c.want {
			if e, err := capsule.ParseDiscoveryEntry(log[1024*(1+i):]); err != nil || e.Address != want {
				t.Errorf("%+v: %v, %v", c, e.Address, err)
			}
		}
	}
}

// TestSizes: the smallest disk has one block, and the largest in memory as much as is told. Nothing may be read or
// written anywhere up to the end.
func TestSizes(t *testing.T) {
	for _, size := range []int64{512, chunkLen, chunkLen + 512, MaxMemory} {
		m, err := NewMemory(size, 512)
		testrig.Must(t, err)
		if n := int64(len(m.chunks)); n != (size-1)/chunkLen+1 {
			t.Errorf("%d bytes in %d chunks", size, n)
		}
		if _, err := m.ReadAt(nil, size); err != nil {
			t.Errorf("nothing, at the end: %v", err)
		}
	}
}

// TestMost: a Config may have as much as is told of each, and an error says which namespace it is about.
func TestMost(t *testing.T) {
	disk, err := NewMemory(1<<20, 512)
	testrig.Must(t, err)
	good := Config{NQN: "nqn." + strings.Repeat("x", capsule.MaxNQN-4), Namespaces: []Namespace{{Backend: disk}},
		Queues: maxQueues, QueueDepth: maxDepth, Controllers: lastController,
		InCapsule: maxInCapsule, MaxData: maxMaxData}
	_, err = New(good)
	testrig.Must(t, err)
	for _, bad := range []Backend{nil, &Memory{size: 100, block: 512}} {
		good.Namespaces = []Namespace{{Backend: disk}, {Backend: bad}}
		if _, err := New(good); err == nil || !strings.Contains(err.Error(), "namespace 2") {
			t.Errorf("got %v", err)
		}
	}
}

// TestRegular: a device is no file, of which parts are given back.
func TestRegular(t *testing.T) {
	at := filepath.Join(t.TempDir(), "disk")
	testrig.Must(t, Create(at, 4096, 512))
	for name, want := range map[string]bool{at: true, os.DevNull: false} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		testrig.Must(t, err)
		if regular(f) != want {
			t.Errorf("%s is a file: %t", name, !want)
		}
		testrig.Must(t, f.Close())
		for _, readOnly := range []bool{false, true} { // a disk that is read only has nothing to be made durable
			if err := (&File{f: f, readOnly: readOnly}).Flush(); (err == nil) != readOnly {
				t.Errorf("read only: %t: flushed: %v", readOnly, err)
			}
		}
	}
}

// ended is a queue of a connection that has ended.
func ended(t *testing.T) *queue {
	t.Helper()
	ours, theirs := testrig.Pipe("host", "target")
	accepted := make(chan error, 1)
	go func() {
		req, err := new(iwarp.ListenConfig).Respond(testrig.Within(t), theirs, nil)
		if err == nil {
			var qp *iwarp.QP
			if qp, err = req.Accept(testrig.Within(t), iwarp.AcceptConfig{}); err == nil {
				err = qp.Abort()
			}
		}
		accepted <- err
	}()
	qp, err := (&iwarp.Dialer{}).Initiate(testrig.Within(t), ours, nil)
	testrig.Must(t, errors.Join(err, <-accepted))
	_ = qp.Abort()
	q := &queue{qp: qp, posted: map[uint64]func(iwarp.WC){}, begun: map[*request]bool{},
		replies: make(chan struct{}, 1)}
	q.ctx, q.cancel = context.WithCancelCause(context.Background())
	return q
}

// TestNothingIsPosted: on a connection that has ended nothing waits for a completion, and who is to be called when all
// is sent is.
func TestNothingIsPosted(t *testing.T) {
	q, called := ended(t), 0
	q.replies <- struct{}{}
	q.reply(capsule.Command{}, capsule.Completion{}, nil, func() { called++ })
	if called != 1 || len(q.replies) != 0 || len(q.posted) != 0 || q.ctx.Err() == nil {
		t.Errorf("called %d times, and %d and %d are left; %v", called, len(q.replies), len(q.posted), q.ctx.Err())
	}
	if !q.mu.TryLock() {
		t.Error("the lock stays")
	}
}

// TestPartIsPosted: where a part was posted, whose completion has told of the end, nobody is told once more.
func TestPartIsPosted(t *testing.T) {
	q := ended(t)
	q.cancel = func(error) {
		q.completes(iwarp.WC{ID: q.lastPosted, Op: iwarp.OpWrite, Status: iwarp.StatusFlushed})
	}
	told := 0
	if err := q.post([]iwarp.SendWR{{Op: iwarp.OpSend}}, func(iwarp.WC) { told++ }); err != nil ||
		told != 1 || len(q.posted) != 0 {
		t.Errorf("%v, told %d times, and %d are left", err, told, len(q.posted))
	}
}

// TestForgotten: nothing is kept of a command that was carried out.
func TestForgotten(t *testing.T) {
	q := &queue{begun: map[*request]bool{}}
	r := &request{q: q, done: make(chan struct{})}
	q.begun[r] = true
	r.finish()
	if len(q.underWay()) != 0 {
		t.Error("it is still under way")
	}
}

// TestControllerOver has a controller that is ending take no queue more, whatever else is in order, and one whose Admin
// Queue is lost have no request left that waits for an event: nobody is there to be told.
func TestControllerOver(t *testing.T) {
	c := &controller{t: &Target{controllers: map[uint16]*controller{}}, granted: 1, status: capsule.StatusReady,
		queues: map[uint16]*queue{0: {}}}
	for _, over := range []bool{true, false} {
		c.over = over
		if got := c.attach(&queue{qid: 1}); (got == capsule.Success) == over {
			t.Errorf("over: %t, and %v", over, got)
		}
	}
	delete(c.queues, 1)
	c.waiting = make([]capsule.Command, 1)
	c.lost(c.queues[0], nil)
	if len(c.waiting) != 0 {
		t.Errorf("%d requests wait", len(c.waiting))
	}
}
