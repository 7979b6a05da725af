//go:build linux && (amd64 || arm64) && cgo && interposer

package main

import "C"

import (
	"net/netip"
	"syscall"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/programs/verbs"
)

// cmEvent is struct iw_cm_event of engine.h.
type cmEvent struct {
	Type                               uint32
	Status                             int32
	Token, Child, QP                   uint64
	ResponderResources, InitiatorDepth uint8
	Length                             uint16
	PrivateData                        [516]byte
	Local, Peer                        [verbs.SockaddrLen]byte
}

// address reads a struct sockaddr. A nil one is no address.
func address(addr unsafe.Pointer, n int32) (netip.AddrPort, bool) {
	if addr == nil {
		return netip.AddrPort{}, true
	}
	return verbs.ParseSockaddr(unsafe.Slice((*byte)(addr), n))
}

//export iw_cm_channel_open
func iw_cm_channel_open(fd int32, waiters unsafe.Pointer, to *uint64) int32 {
	h, errno := device().OpenCMChannel(int(fd), wakes(waiters))
	return give(to, h, errno)
}

//export iw_cm_channel_close
func iw_cm_channel_close(h uint64) int32 { return int32(device().CloseCMChannel(verbs.Handle(h))) }

//export iw_cm_next
func iw_cm_next(h uint64, to unsafe.Pointer) int32 {
	e, errno := device().NextCM(verbs.Handle(h))
	if errno != 0 {
		return int32(errno)
	}
	c := (*cmEvent)(to)
	*c = cmEvent{
		Type: e.Type, Status: e.Status, Token: e.Token, Child: uint64(e.Child), QP: e.QP,
		ResponderResources: e.ResponderResources, InitiatorDepth: e.InitiatorDepth,
	}
	c.Length = uint16(copy(c.PrivateData[:], e.PrivateData))
	verbs.PutSockaddr(&c.Local, e.Local)
	verbs.PutSockaddr(&c.Peer, e.Peer)
	return 0
}

//export iw_id_create
func iw_id_create(channel, token uint64, to *uint64) int32 {
	h, errno := device().CreateID(verbs.Handle(channel), token)
	return give(to, h, errno)
}

//export iw_id_name
func iw_id_name(h, token uint64) int32 { return int32(device().NameID(verbs.Handle(h), token)) }

//export iw_id_destroy
func iw_id_destroy(h uint64) int32 { return int32(device().DestroyID(verbs.Handle(h))) }

//export iw_id_migrate
func iw_id_migrate(h, channel uint64) int32 {
	return int32(device().MigrateID(verbs.Handle(h), verbs.Handle(channel)))
}

//export iw_id_addresses
func iw_id_addresses(h uint64, local, peer unsafe.Pointer) int32 {
	l, p, errno := device().AddressesOf(verbs.Handle(h))
	verbs.PutSockaddr((*[verbs.SockaddrLen]byte)(local), l)
	verbs.PutSockaddr((*[verbs.SockaddrLen]byte)(peer), p)
	return int32(errno)
}

//export iw_id_family_only
func iw_id_family_only(h uint64, on int32) int32 {
	return int32(device().SetFamilyOnly(verbs.Handle(h), on != 0))
}

//export iw_id_bind
func iw_id_bind(h uint64, addr unsafe.Pointer, n int32) int32 {
	a, ok := address(addr, n)
	if !ok {
		return int32(syscall.EINVAL)
	}
	return int32(device().BindAddr(verbs.Handle(h), a))
}

//export iw_id_resolve_addr
func iw_id_resolve_addr(h uint64, src unsafe.Pointer, srcLen int32, dst unsafe.Pointer, dstLen int32) int32 {
	s, ok := address(src, srcLen)
	d, ok2 := address(dst, dstLen)
	if !ok || !ok2 {
		return int32(syscall.EINVAL)
	}
	return int32(device().ResolveAddr(verbs.Handle(h), s, d))
}

//export iw_id_resolve_route
func iw_id_resolve_route(h uint64) int32 { return int32(device().ResolveRoute(verbs.Handle(h))) }

//export iw_id_listen
func iw_id_listen(h uint64) int32 { return int32(device().Listen(verbs.Handle(h))) }

// connParam is struct iw_conn_param of engine.h.
type connParam struct {
	PrivateData                                  unsafe.Pointer
	Length                                       int32
	ResponderResources, InitiatorDepth, Responds uint8
	RNRRetries, MinRNRTimer                      uint8
}

func (p *connParam) clone() verbs.ConnParam {
	return verbs.ConnParam{
		PrivateData: C.GoBytes(p.PrivateData, C.int(p.Length)), ResponderResources: p.ResponderResources,
		InitiatorDepth: p.InitiatorDepth, Responds: p.Responds != 0, RNRRetries: p.RNRRetries,
		MinRNRTimer: p.MinRNRTimer,
	}
}

//export iw_id_connect
func iw_id_connect(h, qp uint64, p unsafe.Pointer) int32 {
	return int32(device().Connect(verbs.Handle(h), verbs.Handle(qp), (*connParam)(p).clone()))
}

//export iw_id_establish
func iw_id_establish(h uint64) int32 { return int32(device().Establish(verbs.Handle(h))) }

//export iw_id_accept
func iw_id_accept(h, qp uint64, p unsafe.Pointer) int32 {
	return int32(device().Accept(verbs.Handle(h), verbs.Handle(qp), (*connParam)(p).clone()))
}

//export iw_id_reject
func iw_id_reject(h uint64, data unsafe.Pointer, n int32) int32 {
	return int32(device().Reject(verbs.Handle(h), C.GoBytes(data, C.int(n))))
}

//export iw_id_disconnect
func iw_id_disconnect(h uint64) int32 { return int32(device().Disconnect(verbs.Handle(h))) }
