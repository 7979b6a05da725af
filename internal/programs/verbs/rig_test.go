//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/testrig"
	"golang.org/x/sys/unix"
)

// must fails the test for any error number but that of success.
func must(t *testing.T, errno syscall.Errno) {
	t.Helper()
	if errno != fine {
		t.Fatalf("errno %d: %v", errno, errno)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for late := testrig.Within(t); !holds(); runtime.Gosched() {
		if late.Err() != nil {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func eventfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	return fd
}

// readable reports whether poll shows an event, and wait waits for that.
func readable(t *testing.T, fd int) bool { return polled(t, fd, 0) }
func wait(t *testing.T, fd int)          { polled(t, fd, -1) }

func polled(t *testing.T, fd, timeout int) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, timeout)
		if err != unix.EINTR {
			if err != nil {
				t.Fatal(err)
			}
			return n > 0
		}
	}
}

// A program is one end: a context, a PD, and an event channel.
type program struct {
	t           *testing.T
	d           *Device
	context, pd Handle
	async       int
	channel     Handle
	events      int
}

func newProgram(t *testing.T) *program { return newProgramWith(t, Config{}) }

func newProgramWith(t *testing.T, cfg Config) *program {
	t.Helper()
	p := &program{t: t, d: NewDevice(cfg), async: eventfd(t), events: eventfd(t)}
	t.Cleanup(func() { _ = p.d.Close() })
	var errno syscall.Errno
	p.context, errno = p.d.OpenContext(p.async, nil)
	must(t, errno)
	p.pd, errno = p.d.AllocPD()
	must(t, errno)
	p.channel, errno = p.d.OpenCMChannel(p.events, nil)
	must(t, errno)
	t.Cleanup(func() { must(t, p.d.CloseCMChannel(p.channel)); must(t, p.d.CloseContext(p.context)) })
	return p
}

// other is one more event channel. It ends before its descriptor is closed, whose number may be another test's then.
func (p *program) other() (channel Handle, fd int) {
	p.t.Helper()
	fd = eventfd(p.t)
	channel, errno := p.d.OpenCMChannel(fd, nil)
	must(p.t, errno)
	p.t.Cleanup(func() { _ = p.d.CloseCMChannel(channel) }) // which the test may have done
	return channel, fd
}

func (p *program) id(token uint64) Handle {
	p.t.Helper()
	id, errno := p.d.CreateID(p.channel, token)
	must(p.t, errno)
	return id
}

// event waits for the next event, which must be of a kind.
func (p *program) event(kind uint32) CMEvent {
	p.t.Helper()
	wait(p.t, p.events)
	e, errno := p.d.NextCM(p.channel)
	must(p.t, errno)
	if e.Type != kind {
		p.t.Fatalf("event %d with status %d, want event %d", e.Type, e.Status, kind)
	}
	return e
}

// listen returns an ID that listens on loopback, and its address.
func (p *program) listen(token uint64) (id Handle, at netip.AddrPort) {
	p.t.Helper()
	id = p.id(token)
	must(p.t, p.d.BindAddr(id, netip.MustParseAddrPort("127.0.0.1:0")))
	must(p.t, p.d.Listen(id))
	at, _, errno := p.d.AddressesOf(id)
	must(p.t, errno)
	return id, at
}

// resolve returns an ID that is ready to connect.
func (p *program) resolve(token uint64, to netip.AddrPort) Handle {
	p.t.Helper()
	id := p.id(token)
	must(p.t, p.d.ResolveAddr(id, netip.AddrPort{}, to))
	p.event(AddrResolved)
	must(p.t, p.d.ResolveRoute(id))
	p.event(RouteResolved)
	return id
}

// A queue is a QP with a CQ and a completion channel of its own.
type queue struct {
	*program
	qp, cq, completions Handle
	fd                  int
	number              uint32
}

func (p *program) queue() *queue { return p.queueOf(0) }

// queueOf is a queue whose receives are those of a Shared Receive Queue, if it is not 0.
func (p *program) queueOf(srq Handle) *queue {
	p.t.Helper()
	q := &queue{program: p, fd: eventfd(p.t)}
	var errno syscall.Errno
	q.completions, errno = p.d.OpenChannel(q.fd, nil)
	must(p.t, errno)
	p.t.Cleanup(func() { must(p.t, p.d.CloseChannel(q.completions)) })
	q.cq, errno = p.d.CreateCQ(p.context, q.completions, 64, 77)
	must(p.t, errno)
	q.qp, q.number, errno = p.d.CreateQP(QPAttr{
		Context: p.context, PD: p.pd, SRQ: srq, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: 16, RecvDepth: 16, SendSGEs: 3,
		RecvSGEs: 2, MaxInline: 64,
		SignalAll: true, Token: 78,
	})
	must(p.t, errno)
	must(p.t, p.d.ModifyQP(q.qp, StateInit))
	return q
}

// completion waits, by the completion channel, for a completion.
func (q *queue) completion() WC {
	q.t.Helper()
	var wc [1]WC
	for {
		must(q.t, q.d.Arm(q.cq, false))
		if q.d.Poll(q.cq, wc[:]) == 1 {
			return wc[0]
		}
		wait(q.t, q.fd)
		token, errno := q.d.NextCQ(q.completions)
		must(q.t, errno)
		want(q.t, "token of the CQ", token, 77)
	}
}

// inner is the QP itself.
func (q *queue) inner() *QP { return q.d.qps.get(q.qp) }

// A region is memory that is registered. Its tagged offsets are addresses.
type region struct {
	mr     Handle
	memory []byte
	key    uint32
}

func (p *program) region(memory string, access uint32) *region {
	p.t.Helper()
	r := &region{memory: []byte(memory)}
	var errno syscall.Errno
	r.mr, r.key, errno = p.d.RegisterMR(p.pd, unsafe.Pointer(&r.memory[0]),
		uint64(len(memory)), r.at(), access)
	must(p.t, errno)
	return r
}

func (r *region) at() uint64 { return uint64(uintptr(unsafe.Pointer(&r.memory[0]))) }

func (r *region) sge() *SGE { return &SGE{Addr: r.at(), Length: uint32(len(r.memory)), LKey: r.key} }

// send posts a request about a whole region.
func (q *queue) send(id uint64, opcode uint32, r, remote *region) {
	q.t.Helper()
	wr := &SendWR{ID: id, SGL: r.sge(), SGEs: 1, Opcode: opcode}
	if remote != nil {
		wr.RemoteAddr, wr.RKey = remote.at(), remote.key
	}
	_, errno := q.d.PostSend(q.qp, wr)
	must(q.t, errno)
}

func (q *queue) recv(id uint64, r *region) {
	q.t.Helper()
	_, errno := q.d.PostRecv(q.qp, &RecvWR{ID: id, SGL: r.sge(), SGEs: 1})
	must(q.t, errno)
}

// connect brings up a connection, and returns both ends with their IDs.
func connect(t *testing.T) (client, server *queue, active, passive Handle) {
	t.Helper()
	return connectWith(t, Config{}, Config{})
}

// connectWith is connect with settings for each end.
func connectWith(t *testing.T, ours, theirs Config) (client, server *queue, active, passive Handle) {
	t.Helper()
	return connectPatient(t, ours, theirs, ConnParam{})
}

// connectPatient is connectWith where the server waits for receives as the parameters say.
func connectPatient(t *testing.T, ours, theirs Config, rnr ConnParam) (client, server *queue, active, passive Handle) {
	t.Helper()
	s, c := newProgramWith(t, theirs), newProgramWith(t, ours)
	_, at := s.listen(1)
	client, server = c.queue(), s.queue()
	active = c.resolve(2, at)
	must(t, c.d.Connect(active, client.qp, ConnParam{ResponderResources: 4, InitiatorDepth: 4}))
	request := s.event(ConnectRequest)
	passive = request.Child
	must(t, s.d.NameID(passive, 3))
	rnr.ResponderResources, rnr.InitiatorDepth = 4, 4
	must(t, s.d.Accept(passive, server.qp, rnr))
	c.event(Established)
	s.event(Established)
	return client, server, active, passive
}
