//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"net/netip"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// Listen has an ID wait for peers: each is a ConnectRequest with an ID of its own. One that was not bound gets a port
// of all addresses.
func (d *Device) Listen(h Handle) syscall.Errno {
	id := d.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.stage == stageNew {
		if errno := id.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); errno != fine {
			return errno
		}
	}
	if id.stage != stageBound {
		return syscall.EINVAL
	}
	ln, err := id.open()
	if err != nil {
		return errnoOf(err)
	}
	id.serves(ln)
	return fine
}

// unfetchedAtMost is how many requests of an ID that listens wait for rdma_get_cm_event. Those after them wait in
// package iwarp, which bounds them, and has no address that sends many be in the way of others.
const unfetchedAtMost = 128

// serves has the ID listen. The caller holds the lock.
func (id *ID) serves(ln net.Listener) {
	id.listener = id.device.listener(ln)
	id.unfetched = make(chan struct{}, unfetchedAtMost)
	id.stage = stageListening
	id.device.listening.add(id)
	go id.serve(id.listener)
}

// open listens on the port that is kept, or on the one that was bound.
func (id *ID) open() (net.Listener, error) {
	if p := id.port; p != nil {
		id.port = nil
		return p.listen()
	}
	network := "tcp"
	switch {
	case id.local.Addr().Is4():
		network = "tcp4"
	case id.familyOnly:
		network = "tcp6"
	}
	return new(net.ListenConfig).Listen(id.ctx, network, id.local.String())
}

// serve turns the requests of peers into events.
func (id *ID) serve(l *iwarp.Listener) {
	for {
		select {
		case id.unfetched <- struct{}{}:
		case <-id.ctx.Done():
			return
		}
		r, err := l.Accept(id.ctx)
		if err != nil {
			return
		}
		id.requested(r)
	}
}

// decline rejects a request without private data.
func (d *Device) decline(r *iwarp.Request) { _ = d.rejecter.RejectAndWait(r, nil) }

func (id *ID) requested(r *iwarp.Request) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.stage != stageListening {
		id.device.decline(r)
		return
	}
	child := id.device.newID(id.channel, 0)
	child.stage, child.request, child.accepts = stageRequested, r, true
	privateData, tagged := ulpdata.CutPrefixTag(r.PrivateData())
	child.tagged = tagged
	child.local, child.peer = addrPort(r.LocalAddr()), addrPort(r.RemoteAddr())
	e := CMEvent{
		Type: ConnectRequest, Child: child.handle, PrivateData: privateData, id: id, Token: id.token,
		Local: child.local, Peer: child.peer,
		// What the peer wants to have outstanding is what it takes of us to answer, and the other way round.
		ResponderResources: depth(int(r.MPA().ORD)), InitiatorDepth: depth(int(r.MPA().IRD)),
	}
	if !id.channel.events.push(e) {
		id.device.DestroyID(child.handle)
		<-id.unfetched
	}
}
