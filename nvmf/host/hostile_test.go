package host_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// refused reports whether an error is of what no controller may do.
func refused(err error) bool {
	_, ok := errors.AsType[*host.ProtocolError](err)
	return ok
}

// TestBadCompletions has a controller answer a Read as none may. The connections end, and nobody waits for ever.
func TestBadCompletions(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name  string
		spoil func(a *answer)
		want  func(error) bool
	}{
		{"of a command that is not under way", func(a *answer) { a.ID ^= 0x001 }, refused},
		{"of a number beyond the queue", func(a *answer) { a.ID |= 0xFFF }, refused},
		{"of the command before in that place", func(a *answer) { a.ID -= 0x1000 }, refused},
		{"too short", func(a *answer) { a.bytes = make([]byte, 15) }, refused},
		{"of no bytes", func(a *answer) { a.bytes, a.invalidate = []byte{}, 0 }, refused},
		{"too long for a receive", func(a *answer) { a.bytes = make([]byte, 65) }, lost},
		{"with a key that was never given", func(a *answer) { a.invalidate ^= 0x0100 }, lost},
		{"twice", func(a *answer) { a.twice = true }, refused},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t)
			p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
				if q.id > 0 && c.Opcode == capsule.OpRead {
					x.spoil(a)
				}
				return true
			}
			d := p.dialer()
			d.Patience = -1
			_, n := p.startServing().open(d)
			var err error
			for turn := 0; err == nil && turn < 1000; turn++ { // the Read before a second answer is a success
				_, err = n.Read(testrig.Within(t), make([]byte, 512), 0)
			}
			if !x.want(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// lost reports whether an error tells of connections that have ended, and of no answer that came.
func lost(err error) bool {
	_, ok := errors.AsType[*host.LostError](err)
	return ok && !refused(err)
}

// TestWrongKey has a controller invalidate the key of another command, which is under way.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.queues = capsule.NewQueues(1)
	keys := make(chan uint32, 1)
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		switch {
		case q.id == 0 || c.Opcode != capsule.OpRead:
		case c.IO().LBA == 0:
			keys <- c.SGL.Key
			return false
		default:
			a.invalidate = <-keys
		}
		return true
	}
	d := p.dialer()
	d.Patience = -1
	_, n := p.startServing().open(d)
	first := make(chan error)
	go func() {
		_, err := n.ReadAt(make([]byte, 512), 0)
		first <- err
	}()
	if _, err := n.ReadAt(make([]byte, 512), 512); !refused(err) {
		t.Error(err)
	}
	if err := <-first; !refused(err) {
		t.Error(err)
	}
}

// TestLongCompletion has a controller send more than a completion, which the host does not read.
func TestLongCompletion(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		a.bytes = append(a.Append(nil), make([]byte, 48)...)
		return true
	}
	_, n := p.startServing().open(p.dialer())
	_, err := n.ReadAt(make([]byte, 512), 0)
	testrig.Must(t, err)
}

// TestBadController has a controller say of itself what none may, or what we cannot work with.
func TestBadController(t *testing.T) {
	t.Parallel()
	unsupported := func(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
	status := func(want capsule.Status) func(error) bool {
		return func(err error) bool {
			s, ok := errors.AsType[*host.StatusError](err)
			return ok && s.Status == want && s.Result == capsule.ConnectOffset(capsule.OffsetSubsystem, true)
		}
	}
	onConnect := func(p *peer, spoil func(a *answer)) {
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if c.Opcode == capsule.OpFabrics && c.FabricsType() == capsule.FabricsConnect {
				spoil(a)
			}
			return true
		}
	}
	for _, x := range []struct {
		name string
		set  func(p *peer)
		want func(error) bool
	}{
		{"another number than by its Connect", func(p *peer) { onConnect(p, func(a *answer) { a.Result = 9 }) },
			refused},
		{"authentication", func(p *peer) { onConnect(p, func(a *answer) { a.Result |= 1 << 16 }) }, unsupported},
		{"no such subsystem", func(p *peer) {
			onConnect(p, func(a *answer) {
				a.Status, a.Result = capsule.InvalidParameter|capsule.DNR,
					capsule.ConnectOffset(capsule.OffsetSubsystem, true)
			})
		}, status(capsule.InvalidParameter | capsule.DNR)},
		{"no keyed SGLs", func(p *peer) { p.controller.SGLs = capsule.SGLSupported }, refused},
		{"no keep-alive", func(p *peer) { p.controller.KeepAlive = 0 }, refused},
		{"queues of one entry", func(p *peer) { p.caps = capsule.NewCapabilities(1, 1) }, refused},
		{"failed", func(p *peer) {
			p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
				if access, _ := c.Property(); c.Opcode == capsule.OpFabrics && access.Property == capsule.PropertyCSTS {
					a.Result = uint64(capsule.StatusFatal)
				}
				return true
			}
		}, refused},
		{"no private data", func(p *peer) { p.private = nil },
			func(err error) bool { return errors.Is(err, ulpdata.ErrConvention) }},
		{"another format", func(p *peer) { p.private = bytes.Repeat([]byte{1}, 32) },
			func(err error) bool { return errors.Is(err, ulpdata.ErrConvention) }},
		{"a rejection", func(p *peer) { p.reject = ulpdata.NVMeReject{Status: 6}.Append(nil) }, func(err error) bool {
			r, ok := errors.AsType[*host.RejectError](err)
			return ok && r.Reason.Status == 6
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t)
			x.set(p)
			c, err := p.startServing().dialer().Dial(testrig.Within(t), "tcp", "target:4420", nqn)
			if !x.want(err) || c != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestBoasts has a controller claim more than can be, which the host bounds by itself.
func TestBoasts(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.caps, p.queues = capsule.NewCapabilities(math.MaxUint16, 255), capsule.NewQueues(math.MaxUint16)
	p.controller.MaxData, p.controller.MaxCommands, p.controller.CommandLen = 255, math.MaxUint16, math.MaxUint32
	c, n := p.startServing().open(p.dialer())
	if c.Queues() != 2 {
		t.Errorf("%d queues", c.Queues())
	}
	data := random(1<<20+512, 3)
	_, err := n.WriteAt(data, 0)
	testrig.Must(t, err)
	for _, w := range p.commands(capsule.OpWrite) {
		if w.SGL.Length > 1<<20 {
			t.Errorf("%v", w.SGL)
		}
	}
	if !bytes.Equal(p.disk[:len(data)], data) {
		t.Error("what is there is not what was written")
	}
}

// TestModest has a controller that can do as little as is allowed.
func TestModest(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.caps, p.queues = capsule.NewCapabilities(2, 0), capsule.NewQueues(1)
	p.controller.MaxData, p.controller.MaxCommands, p.controller.CommandLen = 1, 0, 0
	p.controller.SGLs &^= capsule.SGLOffsetSupported
	p.controller.Version = 0
	c, n := p.startServing().open(p.dialer())
	data, back := random(100<<10, 4), make([]byte, 100<<10)
	_, err := n.WriteAt(data, 512)
	testrig.Must(t, err)
	_, err = n.ReadAt(back, 512)
	testrig.Must(t, err)
	if _, named := n.UUID(); !bytes.Equal(data, back) || c.Queues() != 1 || named {
		t.Errorf("%d queues, a name: %t", c.Queues(), named)
	}
}

// TestBadNamespaces has a controller say of its namespaces what cannot be.
func TestBadNamespaces(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		set  func(n *capsule.IdentifyNamespace)
		want func(error) bool
	}{
		{"none", func(n *capsule.IdentifyNamespace) { *n = capsule.IdentifyNamespace{} },
			func(err error) bool { return errors.Is(err, host.ErrNoNamespace) }},
		{"blocks of one byte", func(n *capsule.IdentifyNamespace) { n.BlockShift = 0 }, refused},
		{"blocks of 2^255 bytes", func(n *capsule.IdentifyNamespace) { n.BlockShift = 255 }, refused},
		{"2^64 bytes", func(n *capsule.IdentifyNamespace) { n.Size = 1 << 55 }, refused},
		{"metadata", func(n *capsule.IdentifyNamespace) { n.Metadata = 8 }, refused},
	} {
		p := newPeer(t)
		x.set(&p.namespace)
		if _, err := p.startServing().dial(p.dialer()).Namespace(testrig.Within(t), 1); !x.want(err) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestBadLists has a controller list namespaces without an end, or without order.
func TestBadLists(t *testing.T) {
	t.Parallel()
	endless := func(after uint32) []byte {
		ids := make([]uint32, capsule.MaxList)
		for i := range ids {
			ids[i] = after + uint32(i) + 1
		}
		return capsule.AppendList(nil, ids)
	}
	for name, list := range map[string]func(after uint32) []byte{
		"endless":        endless,
		"the same":       func(uint32) []byte { return endless(0) },
		"descending":     func(uint32) []byte { return capsule.AppendList(nil, []uint32{2, 1}) },
		"twice":          func(uint32) []byte { return capsule.AppendList(nil, []uint32{1, 1}) },
		"all namespaces": func(uint32) []byte { return capsule.AppendList(nil, []uint32{1, capsule.AllNamespaces}) },
		"one before it all": func(uint32) []byte {
			return capsule.AppendList(nil,
				[]uint32{capsule.AllNamespaces - 1})
		},
	} {
		p := newPeer(t)
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if i := c.Identify(); c.Opcode == capsule.OpIdentify && i.Structure == capsule.StructNamespaces {
				a.page = list(i.NSID)
			}
			return true
		}
		if _, err := p.startServing().dial(p.dialer()).Namespaces(testrig.Within(t)); !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzTarget has a controller answer with bytes of the fuzzer's, at a command of its choice: the host ends what it has
// begun, one way or the other.
func FuzzTarget(f *testing.F) {
	f.Add(uint8(0), make([]byte, 16))
	f.Add(uint8(5), make([]byte, capsule.PageLen))
	f.Add(uint8(9), bytes.Repeat([]byte{0xFF}, capsule.PageLen))
	f.Fuzz(func(t *testing.T, at uint8, data []byte) {
		p := newPeer(t)
		var count uint8
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			if count++; count-1 != at%20 {
				return true
			}
			if len(a.page) > 0 {
				copy(a.page, data)
			} else if len(data) <= 256 {
				a.bytes = data
				copy(data[min(12, len(data)):], []byte{byte(c.ID), byte(c.ID >> 8)}) // one that is under way
			}
			return true
		}
		d := p.dialer()
		d.Patience, d.Timeout = -1, 200*time.Millisecond // a target that does not answer is given up soon
		p.startServing()
		c, err := d.Dial(testrig.Within(t), "tcp", "target:4420", nqn)
		if err != nil {
			return
		}
		defer c.Close()
		all, err := c.Namespaces(testrig.Within(t))
		if err != nil || len(all) == 0 || all[0].Size() > diskBlocks<<diskShift {
			return
		}
		_, _ = all[0].Write(testrig.Within(t), make([]byte, all[0].BlockSize()), 0)
		_, _ = all[0].Read(testrig.Within(t), make([]byte, 10), 0)
	})
}
