package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

const (
	// maxData bounds what one command moves, whatever the controller takes.
	maxData = 1 << 20
	// maxInline bounds in-capsule data, likewise.
	maxInline = 8 << 10
	// hostIRD is how many RDMA Reads the controller may have under way on a queue, if the user does not say.
	hostIRD = 128

	pollStatus = 10 * time.Millisecond
)

// establish brings a controller up.
func (d *Dialer) establish(ctx context.Context, to subsystem) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	s := d.newSession()
	err := s.bringUp(ctx, to)
	if err == nil {
		go s.watch()
		return s, nil
	}
	lost := s.isLost(ctx, err)
	s.release()
	if lost {
		return nil, &cutError{err}
	}
	return nil, err
}

// isLost reports whether a bring-up has failed because a connection ended that had come up, and neither the target nor
// we had a reason. If it is not that of the admin queue, which the target may have ended a moment later, it may not
// have come up.
func (s *session) isLost(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil || isRefusal(err):
		return false
	case s.admin != nil:
		return true
	}
	select {
	case <-s.dead:
		return errors.Is(err, s.err)
	default:
		return false
	}
}

// isRefusal reports whether another attempt would end the same way.
func isRefusal(err error) bool {
	_, status := errors.AsType[*StatusError](err)
	_, protocol := errors.AsType[*ProtocolError](err)
	_, timeout := errors.AsType[*TimeoutError](err)
	_, reject := errors.AsType[*RejectError](err)
	return status || protocol || timeout || reject || errors.Is(err, errors.ErrUnsupported) ||
		errors.Is(err, iwarp.ErrInvalid) || errors.Is(err, iwarp.ErrLimit)
}

// A cutError is a connection that was lost amid the bring-up of a controller: another may do better.
type cutError struct{ error }

func (e *cutError) Unwrap() error { return e.error }

// bringUp takes the steps of NVMe over Fabrics 1.1, section 2.1 (initialization).
func (s *session) bringUp(ctx context.Context, to subsystem) (err error) {
	if s.admin, err = s.connect(ctx, to, 0, capsule.AdminEntries, 0); err != nil {
		return err
	}
	go s.keepAlives()
	entries, err := s.enable(ctx)
	if err != nil {
		return err
	}
	if err := s.identify(ctx); err != nil {
		return err
	}
	if s.identity.Type == capsule.ControllerDiscovery || to.nqn == capsule.DiscoveryNQN {
		return nil
	}
	if n := int(s.identity.MaxCommands); n > 1 {
		entries = min(entries, n)
	}
	return s.connectIO(ctx, to, min(entries, s.d.Depth))
}

// enable has the controller get ready, and returns how many entries its queues may have.
func (s *session) enable(ctx context.Context) (entries int, err error) {
	v, err := s.property(ctx, capsule.PropertyCAP)
	if err != nil {
		return 0, err
	}
	caps := capsule.Capabilities(v)
	if caps.Entries() < 2 {
		return 0, protocolError("has queues of one entry, of which none can be used")
	}
	if err := s.setProperty(ctx, capsule.PropertyCC, uint64(capsule.ConfigurationEnabled)); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Duration(caps.Timeout())*capsule.TimeoutUnit, time.Second))
	defer cancel()
	return caps.Entries(), s.awaitStatus(ctx, capsule.StatusReady)
}

// identify asks the controller what it can do, and checks that we can work with it.
func (s *session) identify(ctx context.Context) (err error) {
	page, err := s.identifyPage(ctx, capsule.Identify{Structure: capsule.StructController})
	if err != nil {
		return err
	}
	i, err := capsule.ParseIdentifyController(page)
	if err != nil {
		return err
	}
	const keyed = capsule.SGLSupported | capsule.SGLKeyedSupported
	switch {
	case i.ControllerID != s.controller:
		return protocolError("says that it is number %d, and was number %d by its Connect",
			i.ControllerID, s.controller)
	case i.SGLs&keyed != keyed && i.Type != capsule.ControllerDiscovery:
		return protocolError("takes no keyed SGL descriptors (SGLS %#x), without which there is no RDMA", i.SGLs)
	case i.KeepAlive == 0 && s.d.KeepAlive > 0 && i.Type != capsule.ControllerDiscovery:
		return protocolError("has no Keep Alive (KAS 0)")
	}
	if i.MaxData > 0 && i.MaxData < 8 { // 2^8 units are maxData
		s.maxData = capsule.MaxDataUnit << i.MaxData
	}
	s.identity = i
	return nil
}

// connectIO makes the I/O queues.
func (s *session) connectIO(ctx context.Context, to subsystem, depth int) error {
	wanted := task{cmd: capsule.Features{Feature: capsule.FeatureQueues,
		Value: uint32(capsule.NewQueues(s.d.Queues))}.Set()}
	c, err := s.command(ctx, s.admin, &wanted)
	if err != nil {
		return err
	}
	granted := capsule.Queues(uint32(c.Result))
	for i := range min(s.d.Queues, granted.Submission(), granted.Completion()) {
		q, err := s.connect(ctx, to, uint16(i+1), depth, s.inline())
		if err != nil {
			return err
		}
		s.io = append(s.io, q)
	}
	return nil
}

// inline is how many bytes of data the controller takes in the capsules of I/O queues.
func (s *session) inline() int {
	i := &s.identity
	if i.SGLs&capsule.SGLOffsetSupported == 0 || i.DataOffset != 0 ||
		i.CommandLen <= capsule.CommandLen/capsule.CapsuleUnit {
		return 0
	}
	return int(min(uint64(i.CommandLen)*capsule.CapsuleUnit-capsule.CommandLen, maxInline))
}

// connect opens the connection of a queue, and sends the Connect.
func (s *session) connect(ctx context.Context, to subsystem, id uint16, depth, inline int) (*queue, error) {
	q := newQueue(id, depth, inline, s)
	if err := q.dial(ctx, s.d.RDMA, to); err != nil {
		q.giveBack() // nothing is received
		return nil, err
	}
	go q.serve(s.serving)
	data := capsule.ConnectData{HostID: s.d.HostID, ControllerID: s.controller,
		SubsystemNQN: to.nqn, HostNQN: s.d.HostNQN}
	n := capsule.Connect{QID: id, SQSize: uint16(depth - 1)}
	if id == 0 {
		data.ControllerID = capsule.AnyController
		n.KeepAlive = uint32(s.d.KeepAlive.Milliseconds())
	}
	c, err := s.command(ctx, q, &task{cmd: n.Command(), data: data.Append(nil)})
	if err == nil && c.Result>>16&3 != 0 {
		err = fmt.Errorf("nvme: the controller asks for authentication: %w", errors.ErrUnsupported)
	}
	if err != nil {
		_ = q.qp.Abort()
		q.retire()
		return nil, err
	}
	if id == 0 {
		s.controller = uint16(c.Result)
	}
	return q, nil
}

// dial opens the connection.
func (q *queue) dial(ctx context.Context, d iwarp.Dialer, to subsystem) error {
	depth := len(q.slots) + 1
	d.QP.SendCQ, d.QP.RecvCQ, d.QP.SRQ = nil, nil, nil
	d.QP.SendDepth, d.QP.RecvDepth = depth, depth
	d.Prepare = q.prepare
	d.MPA.PrivateData = ulpdata.NVMeRequest{QID: q.id, HRQSize: uint16(depth), HSQSize: uint16(depth - 1)}.Append(nil)
	if d.Preset == nil && d.MPA.RTR == 0 {
		d.MPA.ClientServer = true
	}
	if d.MPA.IRD == 0 && d.MPA.ORD == 0 {
		d.MPA.IRD = hostIRD
	}
	qp, err := d.Dial(ctx, to.network, to.address)
	if refused, ok := errors.AsType[*iwarp.RejectError](err); ok {
		if reason, bad := ulpdata.ParseNVMeReject(refused.PrivateData); bad == nil {
			return &RejectError{reason, err}
		}
	}
	if err != nil {
		return err
	}
	if _, err := ulpdata.ParseNVMeReply(qp.Negotiated().PrivateData); err != nil {
		_ = qp.Abort()
		return fmt.Errorf("nvme: %s is no NVMe target: %w", to.address, err)
	}
	return nil
}

// property reads one.
func (s *session) property(ctx context.Context, p capsule.Property) (uint64, error) {
	c, err := s.command(ctx, s.admin, &task{cmd: capsule.PropertyAccess{Property: p, Long: p.Long()}.Get()})
	return c.Result, err
}

func (s *session) setProperty(ctx context.Context, p capsule.Property, v uint64) error {
	_, err := s.command(ctx, s.admin, &task{cmd: capsule.PropertyAccess{Property: p, Long: p.Long(), Value: v}.Set()})
	return err
}

// awaitStatus waits until the controller has a status.
func (s *session) awaitStatus(ctx context.Context, want capsule.ControllerStatus) error {
	for {
		v, err := s.property(ctx, capsule.PropertyCSTS)
		status := capsule.ControllerStatus(v)
		switch {
		case err != nil:
			return err
		case status.Has(want):
			return nil
		case status.Has(capsule.StatusFatal):
			return protocolError("has failed (CSTS %#x)", v)
		}
		select {
		case <-time.After(pollStatus):
		case <-ctx.Done():
			return fmt.Errorf("nvme: the controller's status is %#x, which is not %#x: %w",
				v, uint32(want), deadline.ContextError(ctx))
		}
	}
}

// identifyPage reads a page.
func (s *session) identifyPage(ctx context.Context, i capsule.Identify) ([]byte, error) {
	t := &task{cmd: i.Command(), data: make([]byte, capsule.PageLen), receives: true}
	_, err := s.command(ctx, s.admin, t)
	return t.data, err
}
