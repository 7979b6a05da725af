//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

const (
	// startupTimeout bounds how long a peer may take to answer a Request, as with siw.
	startupTimeout = 10 * time.Second
	// patience is how long a refused connection is tried again. perftest connects twice to the same port, and
	// begins to listen for the second time when the peer may have dialed already; where it is refused, it uses
	// rdma_cm_ids that it has destroyed.
	patience = 300 * time.Millisecond
	pause    = 10 * time.Millisecond
)

// ConnParam is a struct rdma_conn_param: what to tell the peer. The depths are those of RDMA Reads, inbound and
// outbound.
type ConnParam struct {
	PrivateData                        []byte
	ResponderResources, InitiatorDepth uint8
	// Responds has the connection be told of by a ConnectResponse in place of an Established. The program then leads
	// its QP to RTS by itself, which means nothing here, and calls Establish, as InfiniBand has it for QPs that no
	// rdma_cm_id has made.
	Responds bool
	// RNRRetries and MinRNRTimer say for how long messages of the peer wait for a receive: see rnrWait.
	RNRRetries, MinRNRTimer uint8
}

// Connect begins to connect a QP with the peer whose address was resolved. An Established follows, a Rejected
// with the peer's private data (or -ECONNREFUSED, where nobody listens), an Unreachable or a ConnectError.
func (d *Device) Connect(h, qp Handle, p ConnParam) syscall.Errno {
	return d.startConnect(h, qp, stageRoute, func(id *ID, q *QP) {
		q.setRNR(&p)
		go id.connect(q, p, d.lines.join(id.remote()), time.Now().Add(patience))
	})
}

// remote is the peer's address.
func (id *ID) remote() netip.AddrPort {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.peer
}

// startConnect has an ID that has come as far as from connect with a QP.
func (d *Device) startConnect(h, qp Handle, from stage, connect func(*ID, *QP)) syscall.Errno {
	id, q := d.ids.get(h), d.qps.get(qp)
	if id == nil || q == nil || !id.advance(stageConnecting, from) {
		return syscall.EINVAL
	}
	id.attempt.Add(1) // before the QP has the ID: see leaveID
	if errno := id.attach(q); errno != fine {
		id.attempt.Done()
		id.advance(from, stageConnecting)
		return errno
	}
	connect(id, q)
	return fine
}

// attach makes a QP that of the ID's connection.
func (id *ID) attach(q *QP) syscall.Errno {
	if errno := q.link(id); errno != fine {
		return errno
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	id.qp = q
	return fine
}

func (id *ID) connect(q *QP, p ConnParam, in *place, until time.Time) {
	id.mu.Lock()
	id.responds = p.Responds
	id.mu.Unlock()
	in.await(id.ctx)
	err := id.dial(q, p, in, until)
	in.done()
	if err == nil {
		id.established(q)
		return
	}
	e := id.fails(err)
	if id.gaveUp() {
		// as Linux's iwcm has it of a stream that is reset before its answer
		e = CMEvent{Type: Rejected, Status: -int32(syscall.ECONNRESET)}
	}
	id.comesToNothing(q, e)
}

// comesToNothing tells that there is no connection. What is posted is flushed if the program has given it up:
// "transitions any associated QP to the error state, which will flush any posted work requests" (rdma_disconnect(3)).
// The same is librdmacm's answer to a rejection, and programs wait for what it flushes.
func (id *ID) comesToNothing(q *QP, e CMEvent) {
	id.attempt.Done()
	if !id.advance(stageDisconnected, stageConnecting) {
		return
	}
	if e.Type == Rejected || id.gaveUp() { // what gives it up from now on ends the QP itself
		q.endOf(id)
	}
	id.advanceAndEmit(stageDisconnected, stageDisconnected, e)
}

// dial tries until it is not refused any more, or patience is at its end: together with that of those before it in the
// line.
func (id *ID) dial(q *QP, p ConnParam, in *place, until time.Time) error {
	id.mu.Lock()
	local, peer, reserved := id.local, id.peer, id.port
	id.port = nil
	id.mu.Unlock()
	reserved.share()
	defer reserved.release() // until the connection has it, so that nobody else gets it
	privateData, verify, err := q.offered(p.PrivateData)
	if err != nil {
		return err
	}
	d := id.device.dialer(mpa.Offer{
		IRD: mpa.Depth(p.ResponderResources), ORD: mpa.Depth(p.InitiatorDepth),
		PrivateData: privateData, Timeout: startupTimeout,
	}, p.ResponderResources == 0 && p.InitiatorDepth == 0)
	d.Verify = verify
	if local.Port() != 0 {
		d.Net.LocalAddr, d.Net.Control = net.TCPAddrFromAddrPort(local), sharing
	}
	d.Wrap = in.connecting(d.Wrap)
	for {
		err := d.DialQP(id.ctx, q.qp, "tcp", peer.String())
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(until) || !rest(id.ctx) {
			return err
		}
	}
}

// rest waits for a moment. It reports false if the context ends.
func rest(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// failure returns the event by which Linux's iwcm reports that a connection did not come up.
func failure(err error) CMEvent {
	var rejected *iwarp.RejectError
	switch {
	case errors.As(err, &rejected):
		return CMEvent{Type: Rejected, Status: -int32(syscall.ECONNRESET), PrivateData: rejected.PrivateData}
	case errors.Is(err, syscall.ECONNREFUSED):
		return CMEvent{Type: Rejected, Status: -int32(syscall.ECONNREFUSED)}
	case errors.Is(err, syscall.ECONNRESET):
		return CMEvent{Type: Rejected, Status: -int32(syscall.ECONNRESET)}
	}
	errno := errnoOf(err)
	switch errno {
	case syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		return CMEvent{Type: Unreachable, Status: -int32(errno)}
	case syscall.EINVAL:
		errno = syscall.ECONNABORTED
	}
	return CMEvent{Type: ConnectError, Status: -int32(errno)}
}

// established tells that the connection is up, and later that it is over.
func (id *ID) established(q *QP) {
	n, over := q.qp.Negotiated(), q.qp.Done()
	up := accepted(&n.Negotiated)
	id.mu.Lock()
	id.local, id.peer = addrPort(q.qp.LocalAddr()), addrPort(q.qp.RemoteAddr())
	if id.responds {
		up.Type = ConnectResponse
	}
	id.mu.Unlock()
	id.attempt.Done()
	if !id.advanceAndEmit(stageConnecting, stageEstablished, up) {
		return
	}
	if id.gaveUp() { // too late for it not to come up
		q.endOf(id)
	}
	<-over
	q.of(id, func() { q.state.Store(StateErr) })
	id.disconnected()
	id.waitOut()
}

// accepted is an Established. Its depths are the peer's, where that has said any: "This field matches the initiator
// depth specified by the remote node when calling rdma_connect and rdma_accept" (rdma_get_cm_event(3)). Private data is
// that of rdma_accept: what rdma_connect was given came with the ConnectRequest.
func accepted(n *mpa.Negotiated) CMEvent {
	e := CMEvent{Type: Established, ResponderResources: told(n.PeerORD, n.IRD), InitiatorDepth: told(n.PeerIRD, n.ORD)}
	if n.Role == mpa.RoleInitiator {
		e.PrivateData, _ = ulpdata.CutPrefixTag(n.PrivateData)
	}
	return e
}

// told is a depth that the peer has told, or else our own.
func told(peer, own mpa.Depth) uint8 {
	if peer == mpa.NoNegotiation {
		peer = own
	}
	return depth(int(peer))
}

// timewait is how long Linux waits for an acknowledgement over the longest way that it expects of RoCE, 2^18 times
// 4.096 us, in round figures.
const timewait = time.Second

// waitOut tells when that has passed, as devices of RoCE do and those of iWARP do not. Some programs free what a
// connection had only then, as tgt does.
func (id *ID) waitOut() {
	if !id.device.roce {
		return
	}
	destroyed := id.ctx.Done()
	if id.gaveUp() { // which has ended the context as well
		destroyed = nil
	}
	select {
	case <-time.After(id.device.timewait):
		id.advanceAndEmit(stageDisconnected, stageDisconnected, CMEvent{Type: TimewaitExit})
	case <-destroyed:
	}
}

// Establish is the program's answer to a ConnectResponse. It is EINVAL if there was none, or the connection is over.
func (d *Device) Establish(h Handle) syscall.Errno {
	id := d.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if !id.responds || id.stage != stageEstablished {
		return syscall.EINVAL
	}
	id.responds = false
	return fine
}

// responding reports whether the ID waits for Establish.
func (id *ID) responding() bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.responds && id.stage == stageEstablished
}

// depth fits a depth into its field.
func depth(n int) uint8 { return uint8(min(max(n, 0), 255)) }

// disconnected tells, once, that the connection is over.
func (id *ID) disconnected() {
	id.advanceAndEmit(stageEstablished, stageDisconnected, CMEvent{Type: Disconnected})
}

// Disconnect ends the connection in order; a Disconnected follows. One that is on its way is given up, and a Rejected
// or a ConnectError follows. Where it has ended already, has not come up or is a request that waits for its answer,
// nothing happens. It is EINVAL where none was begun.
func (d *Device) Disconnect(h Handle) syscall.Errno {
	id := d.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	switch id.stage {
	case stageRequested:
	case stageConnecting:
		id.givenUp = true
		if !id.accepts { // a peer whose request is answered hears the answer first
			id.cancel()
		}
	case stageEstablished, stageDisconnected:
		if id.qp != nil {
			id.qp.beginOf(id)
		}
	default:
		return syscall.EINVAL
	}
	return fine
}

// gaveUp reports whether the program wants the connection no more.
func (id *ID) gaveUp() bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.givenUp
}

// abandon is for an ID whose QP is destroyed.
func (id *ID) abandon() {
	id.mu.Lock()
	connecting := id.stage == stageConnecting
	id.mu.Unlock()
	if connecting {
		id.cancel()
	}
}

// Accept accepts the request of a peer with a QP. An Established follows, or a ConnectError. ResponderResources is the
// most that the peer is granted, whatever it has asked for.
func (d *Device) Accept(h, qp Handle, p ConnParam) syscall.Errno {
	return d.startConnect(h, qp, stageRequested, func(id *ID, q *QP) {
		q.setRNR(&p)
		go id.accept(q, p)
	})
}

func (id *ID) accept(q *QP, p ConnParam) {
	id.mu.Lock()
	request, over, tagged := id.request, id.givenUp || id.ctx.Err() != nil, id.tagged
	id.request = nil
	id.mu.Unlock()
	// A connection that ends without an answer is to the peer that of one who does not know its dialect.
	if over {
		id.device.decline(request)
		id.comesToNothing(q, failure(context.Canceled))
		return
	}
	ctx, cancel := context.WithTimeout(id.ctx, startupTimeout)
	defer cancel()
	var err error
	if p.PrivateData, err = q.answered(p.PrivateData, tagged); err == nil {
		err = request.AcceptQP(ctx, q.qp, id.device.acceptance(&p))
	}
	if err != nil {
		_ = request.Close()
		id.comesToNothing(q, id.fails(err))
		return
	}
	id.established(q)
}

// acceptance is how a request is accepted.
func (d *Device) acceptance(p *ConnParam) iwarp.AcceptConfig {
	return iwarp.AcceptConfig{
		Preset: d.preset,
		MPA: mpa.Answer{
			IRD: mpa.Depth(p.ResponderResources), MaxIRD: mpa.Depth(p.ResponderResources),
			ORD: mpa.Depth(p.InitiatorDepth), PrivateData: p.PrivateData,
		},
		NoReads: p.ResponderResources == 0, // 0 is meant
	}
}

// Reject refuses the request of a peer, with private data for it. The peer has a second to close the connection.
func (d *Device) Reject(h Handle, privateData []byte) syscall.Errno {
	id := d.ids.get(h)
	if id == nil || !id.advance(stageDisconnected, stageRequested) {
		return syscall.EINVAL
	}
	id.mu.Lock()
	request := id.request
	id.request = nil
	id.mu.Unlock()
	wait, err := d.rejecter.BeginReject(request, privateData)
	if err != nil {
		return errnoOf(err)
	}
	go wait()
	return fine
}
