package host_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// TestNothingIsLeft has connections end in each way, and come up in none: nothing of them stays registered in a PD of
// the user's.
func TestNothingIsLeft(t *testing.T) {
	for name, ends := range map[string]func(t *testing.T, p *peer, d *host.Dialer){
		"closed": func(t *testing.T, p *peer, d *host.Dialer) {
			c, n := p.startServing().open(d)
			_, err := n.WriteAt(make([]byte, 16<<10), 0)
			testrig.Must(t, errors.Join(err, c.Close()))
		},
		"closed with a command that was given up": func(t *testing.T, p *peer, d *host.Dialer) {
			p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
				return q.id == 0 ||
					c.Opcode != capsule.OpRead
			}
			c, n := p.startServing().open(d)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := n.Read(ctx, make([]byte, 512), 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a Read that is not answered: %v", err)
			}
			testrig.Must(t, c.Close())
		},
		"lost": func(t *testing.T, p *peer, d *host.Dialer) {
			c, n := p.startServing().open(d)
			p.cut()
			_, err := n.ReadAt(make([]byte, 512), 0)
			testrig.Must(t, errors.Join(err, c.Close()))
		},
		"a Connect refused": func(t *testing.T, p *peer, d *host.Dialer) {
			p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
				if q.id == 2 {
					a.Status = capsule.ControllerBusy
				}
				return true
			}
			p.startServing()
			if _, err := d.Dial(t.Context(), "tcp", "target:4420", nqn); err == nil {
				t.Error("it is there")
			}
		},
		"a connection refused": func(t *testing.T, p *peer, d *host.Dialer) {
			p.reject = ulpdata.NVMeReject{Status: 6}.Append(nil)
			p.startServing()
			if _, err := d.Dial(t.Context(), "tcp", "target:4420", nqn); err == nil {
				t.Error("it is there")
			}
		},
		"asked for others": func(t *testing.T, _ *peer, d *host.Dialer) {
			p := librarian(t, &catalog{header: capsule.DiscoveryHeader{Generation: 1}})
			d.RDMA.Stack = p
			_, err := d.Discover(t.Context(), "tcp", "target:4420")
			testrig.Must(t, err)
		},
		"lost with a namespace that is not known again": func(t *testing.T, p *peer, d *host.Dialer) {
			var broken atomic.Bool
			p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
				if broken.Load() && c.Opcode == capsule.OpIdentify &&
					c.Identify().Structure == capsule.StructNamespace {
					broken.Store(false)
					a.Status = capsule.InternalError
				}
				return true
			}
			c, n := p.startServing().open(d)
			broken.Store(true)
			p.cut()
			_, err := n.ReadAt(make([]byte, 512), 0)
			testrig.Must(t, errors.Join(err, c.Close()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
				pd, err := rnic.AllocPD()
				testrig.Must(t, err)
				p := newPeer(t)
				d := p.dialer()
				d.RDMA.PD = pd
				ends(t, p, d)
				if n := rnic.Stats(); n.MRs != 0 {
					t.Errorf("left: %+v", n)
				}
			})
		})
	}
}

// TestAsksNoMore has the controller lost at each question for a namespace: it is not asked for ever.
func TestAsksNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t)
		var asked atomic.Int32
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if c.Opcode == capsule.OpIdentify && c.Identify().Structure == capsule.StructNamespace {
				asked.Add(1)
				p.cut()
				return false
			}
			return true
		}
		if _, err := p.startServing().dial(p.dialer()).Namespace(t.Context(), 1); err == nil || asked.Load() > 10 {
			t.Errorf("asked %d times: %v", asked.Load(), err)
		}
	})
}

// TestJournal tells of a controller that is lost, and of the one that takes its place.
func TestJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, j := newPeer(t).startServing(), new(testrig.Buffer)
		d := p.dialer()
		d.Logger = slog.New(slog.NewTextHandler(j, nil))
		c, n := p.open(d)
		p.cut()
		_, err := n.ReadAt(make([]byte, 512), 0)
		testrig.Must(t, errors.Join(err, c.Close()))
		got := j.String()
		if lost, back := strings.Index(got, "the controller is lost"),
			strings.Index(got, "the controller is back"); lost < 0 || back < lost || !strings.Contains(got, nqn) {
			t.Errorf("logged\n%s", got)
		}
	})
}

// TestOneCommandAtATime has a controller that advises to have one command under way, and one that has no Keep Alive and
// is asked for none: both are of use.
func TestOneCommandAtATime(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.controller.MaxCommands, p.controller.KeepAlive = 1, 0
	d := p.dialer()
	d.KeepAlive = -1
	_, n := p.startServing().open(d)
	_, err := n.WriteAt(make([]byte, 1<<20), 0)
	testrig.Must(t, err)
}

// TestDiscoveryHasNoQueues has controllers that tell of disks, and have none, be asked for no I/O queues: one of that
// kind by whatever name, and one by that name of whatever kind.
func TestDiscoveryHasNoQueues(t *testing.T) {
	t.Parallel()
	l := &catalog{header: capsule.DiscoveryHeader{Generation: 1}}
	p := librarian(t, l)
	if c := p.dial(p.dialer()); c.Queues() != 0 {
		t.Errorf("%d queues of one by another name", c.Queues())
	}
	p = librarian(t, l)
	p.controller.Type, p.controller.SGLs = 0, capsule.SGLSupported|capsule.SGLKeyedSupported
	if _, err := p.dialer().Discover(testrig.Within(t), "tcp", "target:4420"); err != nil || p.connections() != 1 {
		t.Errorf("one of another kind: %d connections, %v", p.connections(), err)
	}
}

// TestMostThatThereIs has a controller tell of as much as is taken: namespaces in its list, entries of a log, and
// bytes of a disk.
func TestMostThatThereIs(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		switch i := c.Identify(); {
		case c.Opcode != capsule.OpIdentify:
		case i.Structure == capsule.StructNamespaces && i.NSID < 4096:
			ids := make([]uint32, capsule.MaxList)
			for k := range ids {
				ids[k] = i.NSID + uint32(k) + 1
			}
			a.page = capsule.AppendList(nil, ids)
		case i.Structure == capsule.StructNamespace:
			a.Status = capsule.InternalError | capsule.DNR // no need to look at each
		}
		return true
	}
	_, err := p.startServing().dial(p.dialer()).Namespaces(testrig.Within(t))
	if _, ok := errors.AsType[*host.StatusError](err); !ok {
		t.Errorf("4096 namespaces: %v", err)
	}

	l := &catalog{header: capsule.DiscoveryHeader{Generation: 1, Records: 4096},
		entries: make([]capsule.DiscoveryEntry, 4096)}
	p = librarian(t, l)
	p.controller.MaxData = 8
	if got, err := p.dialer().Discover(testrig.Within(t), "tcp", "target:4420"); err != nil || len(got) != 4096 {
		t.Errorf("%d entries, %v", len(got), err)
	}

	for shift, size := range map[uint8]uint64{9: math.MaxInt64 >> 9, 16: math.MaxInt64 >> 16} {
		p := newPeer(t)
		p.namespace.BlockShift, p.namespace.Size = shift, size
		if _, n := p.startServing().open(p.dialer()); n.Size() != int64(size<<shift) || n.BlockSize() != 1<<shift {
			t.Errorf("%d blocks of 2^%d bytes: %v", size, shift, n)
		}
	}
}

// TestIDs has commands that have the same place one after the other be told from each other.
func TestIDs(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	d := p.dialer()
	d.Depth, d.Queues = 2, 1
	_, n := p.startServing().open(d)
	for range 5 {
		_, err := n.ReadAt(make([]byte, 512), 0)
		testrig.Must(t, err)
	}
	seen := map[uint16]bool{}
	for _, c := range p.commands(capsule.OpRead) {
		seen[c.ID] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d numbers of five commands", len(seen))
	}
}

// TestNoMemory has no memory be left for a transfer, which fails: the place that it had in the queue is free, and the
// connections stay.
func TestNoMemory(t *testing.T) {
	t.Parallel()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: 512 << 10}})
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	p := newPeer(t)
	p.controller.MaxData = 0
	d := p.dialer()
	d.RDMA.PD, d.Depth, d.Queues = pd, 2, 1
	c, n := p.startServing().open(d)
	for range 3 {
		if _, err := n.WriteAt(make([]byte, 1<<20), 0); !errors.Is(err, iwarp.ErrLimit) {
			t.Errorf("no memory: %v", err)
		}
	}
	_, err = n.Write(testrig.Within(t), make([]byte, 512), 0)
	testrig.Must(t, err)
	if got := p.connections(); got != 2 {
		t.Errorf("%d connections", got)
	}
	testrig.Must(t, c.Close())
}

// TestErrorsNameTheCommand has a question refused, and one not answered: the errors say which it was.
func TestErrorsNameTheCommand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPeer(t)
		var mute atomic.Bool
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if c.Opcode == capsule.OpIdentify && c.Identify().Structure == capsule.StructNamespace {
				a.Status = capsule.InternalError | capsule.DNR
				return !mute.Load()
			}
			return true
		}
		c := p.startServing().dial(p.dialer())
		_, err := c.Namespace(t.Context(), 1)
		if status, ok := errors.AsType[*host.StatusError](err); !ok || status.Command != "Identify" {
			t.Errorf("refused: %v", err)
		}
		mute.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = c.Namespace(ctx, 1); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.HasPrefix(err.Error(), "nvme: Identify: ") {
			t.Errorf("not answered: %v", err)
		}
	})
}
