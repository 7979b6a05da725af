package target

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// A Target offers the disks of a Config to hosts.
type Target struct {
	cfg        Config
	namespaces []*namespace
	serial     string
	rejecter   admission.Rejecter
	slots      *admission.Table

	commands, faults atomic.Uint64 // of Stats

	mu          sync.Mutex
	controllers map[uint16]*controller
	queues      map[*queue]bool // whether it is connected
	lastID      uint16          // of a controller
	generation  uint64          // of the discovery log
	draining    bool
	idle        sync.WaitGroup // for queues
}

// New returns a Target. Its error wraps iwarp.ErrInvalid.
func New(cfg Config) (*Target, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	serial := identity("serial", cfg.NQN)
	t := &Target{
		cfg: cfg, serial: hex.EncodeToString(serial[:])[:20], generation: 1, slots: newSlots(&cfg),
		controllers: map[uint16]*controller{}, queues: map[*queue]bool{},
	}
	for i, n := range cfg.Namespaces {
		if n.Name == "" {
			n.Name = strconv.Itoa(i + 1)
		}
		t.namespaces = append(t.namespaces, newNamespace(cfg.NQN, uint32(i+1), n))
	}
	if err := t.checkIdentities(); err != nil {
		return nil, err
	}
	return t, nil
}

// checkIdentities refuses two namespaces that hosts take for one, or do not take at all.
func (t *Target) checkIdentities() error {
	had := map[[16]byte]uint32{}
	for _, n := range t.namespaces {
		for _, id := range [][16]byte{n.uuid, n.nguid} {
			if first, is := had[id]; is {
				return fmt.Errorf("%w: namespaces %d and %d have the same Name or UUID", iwarp.ErrInvalid, first, n.id)
			}
			had[id] = n.id
		}
	}
	return nil
}

// namespace returns that with a number, or nil.
func (t *Target) namespace(id uint32) *namespace {
	if id == 0 || uint64(id) > uint64(len(t.namespaces)) {
		return nil
	}
	return t.namespaces[id-1]
}

// Serve accepts hosts from a Listener until the context or the Listener ends; the error says which. Connections go on
// until Shutdown. A peer that is no NVMe host is rejected.
func (t *Target) Serve(ctx context.Context, ln *iwarp.Listener) error {
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		req, err := ln.Accept(ctx)
		if err != nil {
			return err
		}
		answers.Go(func() {
			if err := t.Accept(ctx, req); err != nil {
				t.cfg.Logger.Info("connection refused", "peer", req.RemoteAddr(), "error", err)
			}
		})
	}
}

// Accept accepts the request of a host, and serves its queue from then on. A request that cannot be served is rejected
// with a status in its private data, which the error names; before Accept returns, the host has a second to close its
// connection.
func (t *Target) Accept(ctx context.Context, req *iwarp.Request) error {
	q, status, err := t.admit(req)
	if err != nil {
		return t.rejecter.RejectBecause(req, ulpdata.NVMeReject{Status: status}.Append(nil), err)
	}
	if err := q.accept(ctx, req); err != nil {
		t.forget(q)
		// unless it has been answered
		_ = t.rejecter.RejectAndWait(req, ulpdata.NVMeReject{Status: ulpdata.NVMeNoResources}.Append(nil))
		return err
	}
	if !t.start(q) {
		q.abort(errDraining)
	}
	go q.run()
	return nil
}

// Shutdown ends all connections in order: commands that are under way are carried out and answered, no others are
// begun, disks are flushed, and then connections are closed. When the context ends, the connections that are left are
// aborted. The error is the context's, or the first of a disk. A Target that was shut down takes no more hosts.
func (t *Target) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	t.draining = true
	left := t.connected()
	t.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		for _, q := range left {
			q.abort(context.Cause(ctx))
		}
	})
	defer stop()
	var drained sync.WaitGroup
	for _, q := range left {
		drained.Go(q.drain)
	}
	drained.Wait()
	err := t.flush()
	for _, q := range left {
		drained.Go(func() { _ = q.qp.Close() }) // how it has ended is the host's affair
	}
	drained.Wait()
	t.idle.Wait()
	return errors.Join(ctx.Err(), err)
}

// flush makes all disks durable.
func (t *Target) flush() (err error) {
	for _, n := range t.namespaces {
		err = errors.Join(err, n.Flush())
	}
	return err
}

// connected is a list of the queues that are. The caller has the lock.
func (t *Target) connected() (all []*queue) {
	for q, is := range t.queues {
		if is {
			all = append(all, q)
		}
	}
	return all
}
