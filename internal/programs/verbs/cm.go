//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/goiwarp/iwarp"
)

// Numbers of enum rdma_cm_event_type.
const (
	AddrResolved    = 0
	AddrError       = 1
	RouteResolved   = 2
	ConnectRequest  = 4
	ConnectResponse = 5
	ConnectError    = 6
	Unreachable     = 7
	Rejected        = 8
	Established     = 9
	Disconnected    = 10
	TimewaitExit    = 15
)

// A CMChannel is a struct rdma_event_channel.
type CMChannel struct{ events *Queue[CMEvent] }

// OpenCMChannel makes a CMChannel, whose events are shown by an eventfd, and wake those who wait.
func (d *Device) OpenCMChannel(fd int, wake func()) (Handle, syscall.Errno) {
	return made(d.cmChannels.add(&CMChannel{newQueue[CMEvent](fd, wake)}))
}

// CloseCMChannel ends a CMChannel. Requests that were not fetched are rejected, and so is what comes to its IDs from
// then on.
func (d *Device) CloseCMChannel(h Handle) syscall.Errno {
	c := d.cmChannels.remove(h)
	if c == nil {
		return syscall.EINVAL
	}
	d.drop(c.events.close())
	return fine
}

// drop rejects the requests among events that nobody fetches any more.
func (d *Device) drop(events []CMEvent) {
	for _, e := range events {
		if e.Child != 0 {
			d.DestroyID(e.Child)
			<-e.id.unfetched
		}
	}
}

// NextCM takes the oldest event of a CMChannel. It is EAGAIN if there is none.
func (d *Device) NextCM(h Handle) (CMEvent, syscall.Errno) {
	c := d.cmChannels.get(h)
	if c == nil {
		return CMEvent{}, syscall.EINVAL
	}
	e, ok := c.events.next()
	if !ok {
		return e, syscall.EAGAIN
	}
	if e.Type == ConnectRequest {
		<-e.id.unfetched
	}
	e.QP = e.id.liveQP()
	return e, fine
}

// liveQP is the token of the QP that has the ID's connection, or 0 where there is none, or none any more.
func (id *ID) liveQP() (token uint64) {
	id.mu.Lock()
	q := id.qp
	id.mu.Unlock()
	if q != nil {
		q.of(id, func() { token = q.live() })
	}
	return token
}

// A CMEvent is what rdma_get_cm_event returns. Token names the rdma_cm_id, and in a ConnectRequest the one that
// listens; Child is the new one then. QP is the token of the QP whose connection it is about, unless that was
// destroyed, or has gone on, when the event is fetched: the pointer that a program has may outlive it. Status is 0 or a
// negative error number.
type CMEvent struct {
	Type   uint32
	Status int32
	Token  uint64
	Child  Handle
	QP     uint64
	// ResponderResources and InitiatorDepth are the depths of RDMA Reads, inbound and outbound, as they concern the one
	// who gets the event; PrivateData is the peer's.
	ResponderResources, InitiatorDepth uint8
	PrivateData                        []byte
	Local, Peer                        netip.AddrPort

	id *ID
}

// A stage is how far an ID has come.
type stage int

const (
	stageNew stage = iota
	stageBound
	stageAddress // the peer's address is resolved
	stageRoute
	stageListening
	stageRequested // by a peer: it can be accepted or rejected
	stageConnecting
	stageEstablished
	stageDisconnected // or never connected
	stageDestroyed
)

// An ID is a struct rdma_cm_id.
type ID struct {
	device *Device
	handle Handle
	ctx    context.Context // of what goes on for it; it ends with the ID
	cancel context.CancelFunc

	mu          sync.Mutex
	channel     *CMChannel
	token       uint64
	stage       stage
	local, peer netip.AddrPort
	port        *port
	listener    *iwarp.Listener
	unfetched   chan struct{} // has one for each ConnectRequest that was not fetched, and one for the next
	request     *iwarp.Request
	tagged      bool // the request had the tag of cm_tag.go
	qp          *QP
	attempt     sync.WaitGroup // to connect the QP
	familyOnly  bool           // RDMA_OPTION_ID_AFONLY
	accepts     bool           // a peer's request, as against one that connects
	givenUp     bool           // by Disconnect, while it was on its way
	responds    bool           // see ConnParam.Responds; until Establish
}

// CreateID returns an ID, whose events go to a channel and bear the token.
func (d *Device) CreateID(channel Handle, token uint64) (Handle, syscall.Errno) {
	c := d.cmChannels.get(channel)
	if c == nil {
		return 0, syscall.EINVAL
	}
	return made(d.newID(c, token).handle)
}

func (d *Device) newID(c *CMChannel, token uint64) *ID {
	id := &ID{device: d, channel: c, token: token}
	id.ctx, id.cancel = context.WithCancel(context.Background())
	id.handle = d.ids.add(id)
	return id
}

// NameID gives the ID of a ConnectRequest its token. It has no events before that.
func (d *Device) NameID(h Handle, token uint64) syscall.Errno {
	id := d.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	id.token = token
	return fine
}

// DestroyID ends an ID, and drops its events that were not fetched. Its QP goes on: it is destroyed by itself.
// A request that was not answered is rejected.
func (d *Device) DestroyID(h Handle) syscall.Errno {
	id := d.ids.remove(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.cancel()
	id.mu.Lock()
	id.stage = stageDestroyed
	listener, request, port, qp := id.listener, id.request, id.port, id.qp
	dropped := id.channel.events.remove(func(e CMEvent) bool { return e.id == id })
	id.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
		d.listening.remove(id)
	}
	port.release()
	if request != nil {
		d.decline(request) // as its program gives it up
	}
	d.drop(dropped)
	if qp != nil {
		qp.unlink(id)
	}
	return fine
}

// MigrateID has an ID's events go to another channel, those too that were not fetched yet: with them go the IDs of
// requests.
func (d *Device) MigrateID(h, channel Handle) syscall.Errno {
	id, c := d.ids.get(h), d.cmChannels.get(channel)
	if id == nil || c == nil {
		return syscall.EINVAL
	}
	d.drop(id.migrate(c))
	return fine
}

// migrate is MigrateID. It returns the events that nobody can fetch any more, as the channel has been destroyed
// meanwhile.
func (id *ID) migrate(to *CMChannel) (left []CMEvent) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if to == id.channel {
		return nil
	}
	moved := id.channel.events.remove(func(e CMEvent) bool { return e.id == id })
	for _, e := range moved {
		if child := id.device.ids.get(e.Child); child != nil {
			child.migrate(to)
		}
	}
	id.channel = to
	if !to.events.push(moved...) {
		return moved
	}
	return nil
}

// AddressesOf returns the addresses of an ID, as far as they are known.
func (d *Device) AddressesOf(h Handle) (local, peer netip.AddrPort, errno syscall.Errno) {
	id := d.ids.get(h)
	if id == nil {
		return local, peer, syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.local, id.peer, fine
}

// emit adds an event, unless the ID is gone. The caller holds the lock.
func (id *ID) emit(e CMEvent) {
	if id.stage == stageDestroyed {
		return
	}
	e.id, e.Token, e.Local, e.Peer = id, id.token, id.local, id.peer
	id.channel.events.push(e)
}

// advanceAndEmit moves an ID from one stage to another, and emits an event. It does nothing, and returns false, if
// the ID is at another stage.
func (id *ID) advanceAndEmit(from, to stage, e CMEvent) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.stage != from {
		return false
	}
	id.stage = to
	id.emit(e)
	return true
}

// advance moves the ID on from one of the stages. It reports whether it was there.
func (id *ID) advance(to stage, from ...stage) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	if !slices.Contains(from, id.stage) {
		return false
	}
	id.stage = to
	return true
}

// addrPort returns the address of a connection.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
