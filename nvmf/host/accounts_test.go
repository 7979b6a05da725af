package host_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
	"github.com/goiwarp/iwarp/nvmf/capsule"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// TestNothingIsLeft has connections end in each way, and come up in none: nothing of them stays registered in a PD of the user's.
func TestNothingIsLeft(t *testing.T) {
	for name, ends := range map[string]func(t *testing.T, p *peer, d *host.Dialer){
		"closed": func(t *testing.T, p *peer, d *host.Dialer) {
			c, n := p.begin().open(d)
			_, err := n.WriteAt(make([]byte, 16<<10), 0)
			testrig.Must(t, errors.Join(err, c.Close()))
		},
		"lost": func(t *testing.T, p *peer, d *host.Dialer) {
			c, n := p.begin().open(d)
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
			p.begin()
			if _, err := d.Dial(t.Context(), "tcp", "target:4420", nqn); err == nil {
				t.Error("it is there")
			}
		},
		"a connection refused": func(t *testing.T, p *peer, d *host.Dialer) {
			p.reject = ulpdata.NVMeReject{Status: 6}.Append(nil)
			p.begin()
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
				if broken.Load() && c.Opcode == capsule.OpIdentify && c.Identify().Structure == capsule.StructNamespace {
					broken.Store(false)
					a.Status = capsule.InternalError
				}
				return true
			}
			c, n := p.begin().open(d)
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
		if _, err := p.begin().dial(p.dialer()).Namespace(t.Context(), 1); err == nil || asked.Load() > 10 {
			t.Errorf("asked %d times: %v", asked.Load(), err)
		}
	})
}

// A journal is a log that several goroutines write.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// TestJournal tells of a controller that is lost, and of the one that takes its place.
func TestJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, j := newPeer(t).begin(), new(journal)
		d := p.dialer()
		d.Logger = slog.New(slog.NewTextHandler(j, nil))
		c, n := p.open(d)
		p.cut()
		_, err := n.ReadAt(make([]byte, 512), 0)
		testrig.Must(t, errors.Join(err, c.Close()))
		got := j.b.String()
		if lost, back := strings.Index(got, "the controller is lost"), strings.Index(got, "the controller is back"); lost < 0 || back < lost || !strings.Contains(got, nqn) {
			t.Errorf("logged\n%s", got)
		}
	})
}
