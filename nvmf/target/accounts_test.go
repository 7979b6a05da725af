package target_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// TestQueueHead tells with each completion how far the queue has come, unless the host does not want to know.
func TestQueueHead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, attr := range []uint8{0, capsule.AttrNoFlow} {
		w := r.dial(0, 32)
		n := capsule.Connect{SGL: w.put(w.data(capsule.AnyController, nqn).Append(nil), 0), SQSize: 2, Attr: attr}
		heads := []uint16{w.want(capsule.Success, n.Command(), nil).SQHead}
		for range 4 {
			heads = append(heads, w.want(capsule.Success, capsule.NewCommand(capsule.OpKeepAlive, 0), nil).SQHead)
		}
		for i, got := range heads {
			want := uint16(capsule.SQHeadOff)
			if attr == 0 {
				want = uint16((i + 1) % 3)
			}
			if got != want {
				t.Errorf("attributes %#x: completion %d has SQHD %d, not %d", attr, i, got, want)
			}
		}
	}
}

// TestMemoryComesBack has a queue with little memory carry out more commands, one after the other, than it has memory
// or Reads for.
func TestMemoryComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxData, c.QueueMemory = 8<<10, 16<<10 })
	w := r.io(r.admin(), 1, 8)
	for i := range 20 {
		w.want(capsule.Success, blocks(0, 16, w.put(pattern(8<<10, byte(i)), 0)).Command(capsule.OpWrite), nil)
		w.want(capsule.Success, blocks(0, 16, w.keyed(8<<10, 8<<10)).Command(capsule.OpRead), nil)
		same(t, "what was read", w.get(8<<10, 8<<10), pattern(8<<10, byte(i)))
	}
}

// TestNothingIsLeft gives back all that queues had of the RNIC when they have ended, or have not come up.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.io(r.admin(), 1, 8)
	w.want(capsule.Success, blocks(0, 16, w.keyed(0, 8<<10)).Command(capsule.OpRead), nil)
	must(t, r.target.Shutdown(testrig.Within(t)))
	if n := r.rnic.Stats(); n.MRs != 0 {
		t.Errorf("left: %+v", n)
	}
	if s := r.target.Stats(); s.Controllers != 0 || s.Queues != 0 || s.Faults != 0 || s.Commands < 2 {
		t.Errorf("%+v", s)
	}

	r = newRig(t, nil)
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	ours, theirs := testrig.Pipe("host", "target")
	var accepting sync.WaitGroup
	accepting.Go(func() {
		req, err := (&iwarp.ListenConfig{RNIC: rnic}).Respond(testrig.Within(t), theirs, nil)
		testrig.Should(t, err)
		over, end := context.WithCancel(t.Context())
		end()
		if r.target.Accept(over, req) == nil {
			t.Error("it was accepted")
		}
	})
	o := offer
	o.PrivateData, o.ClientServer = requestOf(0, 32), true
	if _, err := (&iwarp.Dialer{MPA: o}).Initiate(testrig.Within(t), ours, nil); err == nil {
		t.Error("the host has a connection")
	}
	accepting.Wait()
	if n := rnic.Stats(); n.MRs != 0 {
		t.Errorf("left of what was not accepted: %+v", n)
	}
	must(t, r.target.Shutdown(testrig.Within(t)))
}

// TestEventsTakeNoEntries has a queue of four entries with four requests for events be as good as an empty one.
func TestEventsTakeNoEntries(t *testing.T) {
	t.Parallel()
	w := newRig(t, nil).dial(0, 4)
	n := capsule.Connect{SGL: w.put(w.data(capsule.AnyController, nqn).Append(nil), 0), SQSize: 3}
	w.want(capsule.Success, n.Command(), nil)
	w.enable()
	for range 4 {
		w.send(capsule.NewCommand(capsule.OpAsyncEvent, 0), nil)
	}
	for range 3 { // which may be there before any request for an event is known to wait
		w.send(capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
	}
	for range 10 {
		w.want(capsule.Success, capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
	}
}

// A recorder notes whether zeroes have to stay reserved.
type recorder struct {
	*Memory
	deallocated, flushed atomic.Int32
}

func (d *recorder) WriteZeroes(off, n int64, deallocate bool) error {
	if deallocate {
		d.deallocated.Add(1)
	}
	return d.Memory.WriteZeroes(off, n, deallocate)
}

func (d *recorder) Flush() error { d.flushed.Add(1); return nil }

// TestControl passes on what a command asks for beside its bytes, and nothing else.
func TestControl(t *testing.T) {
	t.Parallel()
	d := &recorder{}
	r := newRig(t, func(c *Config) {
		d.Memory = c.Namespaces[0].Backend.(*Memory)
		c.Namespaces[0].Backend = d
	})
	w := r.io(r.admin(), 1, 8)
	for _, v := range []struct {
		control              uint16
		deallocated, flushed int32
	}{{0, 0, 0}, {capsule.ControlDeallocate, 1, 0}, {capsule.ControlFUA, 0, 1},
		{capsule.ControlFUA | capsule.ControlDeallocate, 1, 1}} {
		i := blocks(0, 1, capsule.SGL{Type: capsule.SGLKeyed})
		i.Control = v.control
		w.want(capsule.Success, i.Command(capsule.OpWriteZeroes), nil)
		if a, b := d.deallocated.Swap(0), d.flushed.Swap(0); a != v.deallocated || b != v.flushed {
			t.Errorf("control %#x: deallocated %d times, and flushed %d", v.control, a, b)
		}
	}
}

// TestBeyond refuses what is beyond the capsule, or the log, by the byte, and takes what is just not.
func TestBeyond(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxData = 8 << 10 })
	a := r.admin()
	w := r.io(a, 1, 8)
	in := func(off uint64, n uint32) capsule.SGL {
		return capsule.SGL{Type: capsule.SGLOffset, Address: off, Length: n}
	}
	discard := func(s capsule.SGL) capsule.Command {
		return capsule.DatasetManagement{SGL: s, NSID: 1, Ranges: 1, Deallocate: true}.Command()
	}
	data := make([]byte, 512)
	for _, s := range []capsule.SGL{in(16, 512), in(512, 512), in(513, 512)} {
		w.want(capsule.InvalidSGLOffset|capsule.DNR, blocks(0, 1, s).Command(capsule.OpWrite), data)
	}
	w.want(capsule.Success, blocks(0, 1, in(0, 512)).Command(capsule.OpWrite), data)
	w.want(capsule.InvalidSGLOffset|capsule.DNR, discard(in(500, 16)), data)
	w.want(capsule.Success, discard(in(496, 16)), data)
	log := func(off uint64, n int) capsule.Command {
		return capsule.GetLogPage{SGL: a.keyed(0, n), NSID: capsule.AllNamespaces, Page: capsule.LogHealth,
			Dwords: uint32(n / 4), Offset: off}.Command()
	}
	for _, v := range []struct {
		off  uint64
		n    int
		want capsule.Status
	}{{512, 512, capsule.Success}, {516, 512, capsule.InvalidField | capsule.DNR}, {0, 8 << 10, capsule.Success},
		{0, 8<<10 + 4, capsule.InvalidField | capsule.DNR}} {
		a.want(v.want, log(v.off, v.n), nil)
	}
	long := capsule.PropertyAccess{Property: capsule.PropertyCC,
		Value: uint64(capsule.ConfigurationEnabled), Long: true}
	a.want(capsule.InvalidField|capsule.DNR, long.Set(), nil)
	bad := r.dial(0, 32)
	n := capsule.Connect{SGL: bad.keyed(0, 512), SQSize: 31}
	bad.want(capsule.InvalidSGLLength|capsule.DNR, n.Command(), nil)
}

// TestWithoutDataNothingIsInvalidated leaves an STag alone that comes with a length of zero.
func TestWithoutDataNothingIsInvalidated(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.io(r.admin(), 1, 8)
	mr := w.own(make([]byte, 512))
	none := capsule.NewCommand(capsule.OpFlush, 1)
	none.SGL = capsule.SGL{Type: capsule.SGLKeyedInvalidate, Key: mr.STag()}
	if got := w.want(capsule.Success, none, nil); got.invalidated != 0 || !mr.Valid() {
		t.Errorf("STag %#x was invalidated", got.invalidated)
	}
}

// TestJournal tells of hosts that come and go, and of those that are refused.
func TestJournal(t *testing.T) {
	t.Parallel()
	j := new(testrig.Buffer)
	r := newRig(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(j, nil)) })
	r.admin()
	var rejected *iwarp.RejectError
	if _, err := r.try(requestOf(0, 33), offer); !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	_ = rejected.Conn.Close()
	must(t, r.target.Shutdown(testrig.Within(t)))
	for _, want := range []string{"host connected", `host=` + hostNQN, "controller=1", "queue ended"} {
		if !strings.Contains(j.String(), want) {
			t.Errorf("no %q in\n%s", want, j)
		}
	}
	if strings.Contains(j.String(), "reason=<nil>") {
		t.Errorf("a queue ended for no reason:\n%s", j)
	}
}

// TestRefusedWithANumber tells who accepts how many entries were asked for, and how many there may be.
func TestRefusedWithANumber(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ours, theirs := testrig.Pipe("host", "target")
	accepted := make(chan error, 1)
	go func() {
		req, err := new(iwarp.ListenConfig).Respond(testrig.Within(t), theirs, nil)
		if err == nil {
			err = r.target.Accept(testrig.Within(t), req)
		}
		accepted <- err
	}()
	o := offer
	o.PrivateData, o.ClientServer = requestOf(0, 33), true
	_, err := (&iwarp.Dialer{MPA: o}).Initiate(testrig.Within(t), ours, nil)
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	_ = rejected.Conn.Close()
	if err := <-accepted; err == nil || !strings.Contains(err.Error(), "a queue of 33 entries: 2 to 32") {
		t.Errorf("got %v", err)
	}
}
