//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"syscall"
	"testing"
	"unsafe"
)

// posted returns the error number of a Send of 4 bytes with an lkey.
func posted(q *queue, lkey uint32) syscall.Errno {
	memory := new([4]byte)
	wr := &SendWR{SGL: &SGE{Addr: uint64(uintptr(unsafe.Pointer(memory))), Length: 4,
		LKey: lkey}, SGEs: 1, Opcode: wrSend}
	bad, errno := q.d.PostSend(q.qp, wr)
	if errno != fine && bad != wr {
		return syscall.EIO
	}
	return errno
}

// TestWrongHandles gives every function the number of nothing: EINVAL.
func TestWrongHandles(t *testing.T) {
	d := newProgram(t).d
	const h = 12345
	for what, f := range map[string]func() syscall.Errno{
		"close context": func() syscall.Errno { return d.CloseContext(h) },
		"async event":   func() syscall.Errno { _, e := d.NextAsync(h); return e },
		"dealloc pd":    func() syscall.Errno { return d.DeallocPD(h) },
		"reg mr":        func() syscall.Errno { _, _, e := d.RegisterMR(h, nil, 0, 0, 0); return e },
		"dereg mr":      func() syscall.Errno { return d.DeregisterMR(h) },
		"rereg mr":      func() syscall.Errno { return d.ReregisterMR(h, changeAccess, h, nil, 0, 0) },
		"alloc mw":      func() syscall.Errno { _, _, e := d.AllocWindow(h, 1); return e },
		"dealloc mw":    func() syscall.Errno { return d.DeallocWindow(h) },
		"close channel": func() syscall.Errno { return d.CloseChannel(h) },
		"cq event":      func() syscall.Errno { _, e := d.NextCQ(h); return e },
		"create cq":     func() syscall.Errno { _, e := d.CreateCQ(h, 0, 1, 0); return e },
		"resize cq":     func() syscall.Errno { return d.ResizeCQ(h, 1) },
		"destroy cq":    func() syscall.Errno { return d.DestroyCQ(h) },
		"arm":           func() syscall.Errno { return d.Arm(h, false) },
		"create srq":    func() syscall.Errno { _, e := d.CreateSRQ(h, h, 1, 1, 0); return e },
		"modify srq":    func() syscall.Errno { return d.ModifySRQ(h, 0, 0) },
		"query srq":     func() syscall.Errno { _, _, e := d.QuerySRQ(h); return e },
		"destroy srq":   func() syscall.Errno { return d.DestroySRQ(h) },
		"post srq":      func() syscall.Errno { _, e := d.PostSRQ(h, nil); return e },
		"create qp":     func() syscall.Errno { _, _, e := d.CreateQP(QPAttr{}); return e },
		"find qp":       func() syscall.Errno { _, e := d.FindQP(h); return e },
		"modify qp":     func() syscall.Errno { return d.ModifyQP(h, StateErr) },
		"query qp":      func() syscall.Errno { _, _, _, e := d.QueryQP(h); return e },
		"destroy qp":    func() syscall.Errno { return d.DestroyQP(h) },
		"post send":     func() syscall.Errno { _, e := d.PostSend(h, nil); return e },
		"post recv":     func() syscall.Errno { _, e := d.PostRecv(h, nil); return e },
		"modify ud":     func() syscall.Errno { return d.ModifyUD(h, StateErr) },
		"key of ud":     func() syscall.Errno { return d.SetQKey(h, 0) },
		"query ud":      func() syscall.Errno { _, e := d.QueryUD(h); return e },
		"destroy ud":    func() syscall.Errno { return d.DestroyUD(h) },
		"send ud":       func() syscall.Errno { _, e := d.SendDatagrams(h, nil); return e },
		"recv ud":       func() syscall.Errno { _, e := d.RecvDatagrams(h, nil); return e },
		"destroy ah":    func() syscall.Errno { return d.DestroyAH(h) },
		"close events":  func() syscall.Errno { return d.CloseCMChannel(h) },
		"cm event":      func() syscall.Errno { _, e := d.NextCM(h); return e },
		"create id":     func() syscall.Errno { _, e := d.CreateID(h, 0); return e },
		"name id":       func() syscall.Errno { return d.NameID(h, 0) },
		"destroy id":    func() syscall.Errno { return d.DestroyID(h) },
		"establish":     func() syscall.Errno { return d.Establish(h) },
		"migrate":       func() syscall.Errno { return d.MigrateID(h, h) },
		"addresses":     func() syscall.Errno { _, _, e := d.AddressesOf(h); return e },
		"bind":          func() syscall.Errno { return d.BindAddr(h, netip.AddrPort{}) },
		"resolve addr":  func() syscall.Errno { return d.ResolveAddr(h, netip.AddrPort{}, netip.AddrPort{}) },
		"resolve route": func() syscall.Errno { return d.ResolveRoute(h) },
		"listen":        func() syscall.Errno { return d.Listen(h) },
		"connect":       func() syscall.Errno { return d.Connect(h, h, ConnParam{}) },
		"accept":        func() syscall.Errno { return d.Accept(h, h, ConnParam{}) },
		"reject":        func() syscall.Errno { return d.Reject(h, nil) },
		"disconnect":    func() syscall.Errno { return d.Disconnect(h) },
	} {
		want(t, what, f(), syscall.EINVAL)
	}
	want(t, "poll", d.Poll(h, nil), -1)
}

// TestOrder refuses what comes too early, too late or twice.
func TestOrder(t *testing.T) {
	p := newProgram(t)
	q, id := p.queue(), p.id(1)
	want(t, "a route before the address", p.d.ResolveRoute(id), syscall.EINVAL)
	want(t, "connect before the route", p.d.Connect(id, q.qp, ConnParam{}), syscall.EINVAL)
	want(t, "accept without a request", p.d.Accept(id, q.qp, ConnParam{}), syscall.EINVAL)
	want(t, "disconnect without a connection", p.d.Disconnect(id), syscall.EINVAL)
	want(t, "a foreign address", p.d.BindAddr(id, netip.MustParseAddrPort("192.0.2.99:1")), syscall.EADDRNOTAVAIL)
	must(t, p.d.BindAddr(id, netip.MustParseAddrPort("127.0.0.1:0")))
	at, _, _ := p.d.AddressesOf(id)
	other, late := p.id(2), p.id(3)
	must(t, p.d.BindAddr(other, at)) // nobody listens
	want(t, "bound twice", p.d.BindAddr(id, netip.MustParseAddrPort("127.0.0.1:0")), syscall.EINVAL)
	must(t, p.d.Listen(id))
	want(t, "listening twice", p.d.Listen(id), syscall.EINVAL)
	want(t, "a port that is taken", p.d.Listen(other), syscall.EADDRINUSE)
	want(t, "a port that is taken", p.d.BindAddr(late, at), syscall.EADDRINUSE)
}

// TestFamilyOnly has one ID listen on all addresses of IPv4 and another on all of IPv6, at one port.
func TestFamilyOnly(t *testing.T) {
	p := newProgram(t)
	listen := func(token uint64, at string, only bool) (Handle, syscall.Errno) {
		id := p.id(token)
		must(t, p.d.SetFamilyOnly(id, only))
		if errno := p.d.BindAddr(id, netip.MustParseAddrPort(at)); errno != fine {
			t.Skipf("%s: %v", at, errno)
		}
		return id, p.d.Listen(id)
	}
	four, errno := listen(1, "0.0.0.0:0", true)
	must(t, errno)
	at, _, _ := p.d.AddressesOf(four)
	both := netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()).String()
	_, errno = listen(2, both, false)
	want(t, "of both families", errno, syscall.EADDRINUSE)
	six, errno := listen(3, both, true)
	want(t, "of IPv6", errno, fine)
	want(t, "after bind", p.d.SetFamilyOnly(six, false), syscall.EINVAL)
	want(t, "no ID", p.d.SetFamilyOnly(0, true), syscall.EINVAL)
	_, errno = listen(4, "[::]:0", true) // a port that the kernel chooses
	must(t, errno)
}

// TestBusy refuses to destroy what is in use, and destroys each object once.
func TestBusy(t *testing.T) {
	p := newProgram(t)
	q := p.queue()
	r := p.region("memory", 0)
	want(t, "PD", p.d.DeallocPD(p.pd), syscall.EBUSY)
	want(t, "CQ", p.d.DestroyCQ(q.cq), syscall.EBUSY)
	must(t, p.d.DestroyQP(q.qp))
	want(t, "QP again", p.d.DestroyQP(q.qp), syscall.EINVAL)
	must(t, p.d.DestroyCQ(q.cq))
	want(t, "CQ again", p.d.DestroyCQ(q.cq), syscall.EINVAL)
	want(t, "PD with a region", p.d.DeallocPD(p.pd), syscall.EBUSY)
	must(t, p.d.DeregisterMR(r.mr))
	want(t, "region again", p.d.DeregisterMR(r.mr), syscall.EINVAL)
	must(t, p.d.DeallocPD(p.pd))
	want(t, "PD again", p.d.DeallocPD(p.pd), syscall.EINVAL)
}

// TestRights refuses rights that make no sense, memory that is not there, and what there is not.
func TestRights(t *testing.T) {
	p := newProgram(t)
	memory := make([]byte, 8)
	register := func(addr unsafe.Pointer, access uint32) syscall.Errno {
		_, _, errno := p.d.RegisterMR(p.pd, addr, 8, 0, access)
		return errno
	}
	at := unsafe.Pointer(&memory[0])
	want(t, "remote write alone", register(at, accessRemoteWrite), syscall.EINVAL)
	want(t, "a right that nobody knows", register(at, accessLocalWrite|1<<10), syscall.EINVAL)
	want(t, "on-demand paging", register(at, accessLocalWrite|accessOnDemand), syscall.EOPNOTSUPP)
	want(t, "flush", register(at, accessLocalWrite|accessFlush), syscall.EOPNOTSUPP)
	want(t, "remote read alone", register(at, accessRemoteRead), fine)
	want(t, "with what may be ignored", register(at, accessLocalWrite|accessRemoteAtomic|1<<20|1<<29), fine)
	want(t, "memory of nobody's", register(unsafe.Add(nil, 4096), accessLocalWrite), syscall.EFAULT)
}

// TestBadRequests names the request of a list that is at fault; those before it are posted.
func TestBadRequests(t *testing.T) {
	client, server, _, _ := connect(t)
	inbox := server.region("....", accessLocalWrite)
	server.recv(1, inbox)
	good := client.region("good", 0)
	_, errno := client.d.PostSend(client.qp, &SendWR{SGL: good.sge(), SGEs: 1, Opcode: wrSendImm})
	want(t, "an operation that there is not", errno, syscall.EOPNOTSUPP)
	bad := &SendWR{ID: 3, SGL: &SGE{Addr: good.at(), Length: 4, LKey: good.key + 1}, SGEs: 1, Opcode: wrSend}
	at, errno := client.d.PostSend(client.qp, &SendWR{ID: 2, SGL: good.sge(), SGEs: 1, Opcode: wrSend, Next: bad})
	if at != bad || errno != syscall.EINVAL {
		t.Errorf("%v: %v", at, errno)
	}
	many := []SGE{*good.sge(), *good.sge(), *good.sge(), *good.sge()}
	for _, flags := range []uint32{0, sendInline} {
		_, errno = client.d.PostSend(client.qp, &SendWR{SGL: &many[0], SGEs: 4, Opcode: wrSend, Flags: flags})
		want(t, "a Send of more elements than the QP has", errno, syscall.EINVAL)
	}
	want(t, "all of a list", client.d.PostAll(client.qp,
		&SendWR{SGL: &many[0], SGEs: 4, Opcode: wrSend}), syscall.EINVAL)
	_, errno = client.d.PostRecv(client.qp, &RecvWR{SGL: &many[0], SGEs: 3})
	want(t, "a receive of more elements than the QP has", errno, syscall.EINVAL)
	_, errno = client.d.PostSend(client.qp, &SendWR{SGL: good.sge(), SGEs: -1, Opcode: wrSend})
	want(t, "less than no elements", errno, syscall.EINVAL)
	_, errno = client.d.PostRecv(client.qp, &RecvWR{SGL: good.sge(), SGEs: -1})
	want(t, "less than no elements", errno, syscall.EINVAL)
	nowhere, nothing := &SendWR{SGEs: 1, Opcode: wrSend}, &RecvWR{SGEs: 1}
	for _, flags := range []uint32{0, sendInline} {
		nowhere.Flags = flags
		at, errno = client.d.PostSend(client.qp, nowhere)
		want(t, "a Send of elements that are nowhere", errno, syscall.EINVAL)
		want(t, "which", at, nowhere)
	}
	want(t, "all of a list", client.d.PostAll(client.qp, nowhere), syscall.EINVAL)
	receive, errno := client.d.PostRecv(client.qp, nothing)
	want(t, "a receive of elements that are nowhere", errno, syscall.EINVAL)
	want(t, "which", receive, nothing)
	want(t, "completion", server.completion().ID, 1)
	want(t, "received", string(inbox.memory), "good")
	want(t, "a key of nothing", posted(client, 4711), syscall.EINVAL)
}

// TestLongList posts more receives than fit into the scratch of one call, up to the depth of the queue.
func TestLongList(t *testing.T) {
	p := newProgram(t)
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 100, 1, 5)
	must(t, errno)
	r := p.region("....", accessLocalWrite)
	list := make([]RecvWR, 101)
	for i := range list {
		list[i] = RecvWR{ID: uint64(i), SGL: r.sge(), SGEs: 1}
		if i > 0 {
			list[i-1].Next = &list[i]
		}
	}
	bad, errno := p.d.PostSRQ(srq, &list[0])
	if bad != &list[100] || errno != syscall.ENOMEM {
		t.Errorf("%v: %v", bad, errno)
	}
	for _, elements := range []int32{-1, 2} {
		bad, errno = p.d.PostSRQ(srq, &RecvWR{SGL: unsafe.SliceData([]SGE{*r.sge(), *r.sge()}), SGEs: elements})
		want(t, "another number of elements than the queue has", errno, syscall.EINVAL)
		want(t, "which", bad != nil, true)
	}
	nothing := &RecvWR{SGEs: 1}
	bad, errno = p.d.PostSRQ(srq, nothing)
	want(t, "elements that are nowhere", errno, syscall.EINVAL)
	want(t, "which", bad, nothing)
	must(t, p.d.ModifySRQ(srq, 200, 7))
	want(t, "a limit above the depth", p.d.ModifySRQ(srq, 150, 151), syscall.EINVAL)
	want(t, "a depth below what is posted", p.d.ModifySRQ(srq, 99, 3), syscall.EINVAL)
	depth, limit, errno := p.d.QuerySRQ(srq)
	must(t, errno)
	want(t, "depth", depth, 200)
	want(t, "limit", limit, 7)
	must(t, p.d.DestroySRQ(srq))
}

// TestReadOnlyMemory: a region that is to be written is refused where its memory may only be read, and any region where
// it may not even be.
func TestReadOnlyMemory(t *testing.T) {
	if !populates(populateWrite) {
		t.Skip("this kernel tells only whether memory is mapped")
	}
	p := newProgram(t)
	for _, tt := range []struct {
		protection int
		access     uint32
		want       syscall.Errno
	}{
		{syscall.PROT_READ | syscall.PROT_WRITE, accessLocalWrite, fine},
		{syscall.PROT_READ, 0, fine},
		{syscall.PROT_READ, accessRemoteRead, fine},
		{syscall.PROT_READ, accessLocalWrite, syscall.EFAULT},
		{syscall.PROT_NONE, 0, syscall.EFAULT},
		{syscall.PROT_NONE, accessLocalWrite, syscall.EFAULT},
	} {
		pages, err := syscall.Mmap(-1, 0, 2*syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		second := pages[syscall.Getpagesize():]
		if err := syscall.Mprotect(second, tt.protection); err != nil {
			t.Fatal(err)
		}
		across := unsafe.Pointer(&pages[len(pages)-len(second)-4])
		mr, _, errno := p.d.RegisterMR(p.pd, across, 8, 0, tt.access)
		want(t, "ibv_reg_mr", errno, tt.want)
		if errno == fine {
			must(t, p.d.DeregisterMR(mr))
		}
		if err := syscall.Munmap(pages); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRegisterNothing: as an iWARP device, a region of no bytes is refused, as siw does, and in the guise of RoCE it
// is one, as with some devices of that.
func TestRegisterNothing(t *testing.T) {
	memory := make([]byte, 8)
	for roce, errno := range map[bool]syscall.Errno{false: syscall.EINVAL, true: fine} {
		p := newProgramWith(t, Config{RoCE: roce})
		_, _, got := p.d.RegisterMR(p.pd, unsafe.Pointer(&memory[0]), 0, 0, accessLocalWrite)
		want(t, "a region of nothing", got, errno)
	}
}
