//go:build linux && (amd64 || arm64) && cgo && interposer

package main

import "C"

import (
	"unsafe"

	"github.com/goiwarp/iwarp/internal/programs/verbs"
)

//export iw_context_open
func iw_context_open(fd int32, waiters unsafe.Pointer, to *uint64) int32 {
	h, errno := device().OpenContext(int(fd), wakes(waiters))
	return give(to, h, errno)
}

//export iw_context_close
func iw_context_close(h uint64) int32 { return int32(device().CloseContext(verbs.Handle(h))) }

//export iw_async_next
func iw_async_next(h uint64, event *uint32, token *uint64) int32 {
	e, errno := device().NextAsync(verbs.Handle(h))
	*event, *token = e.Type, e.Token
	return int32(errno)
}

//export iw_pd_alloc
func iw_pd_alloc(to *uint64) int32 {
	h, errno := device().AllocPD()
	return give(to, h, errno)
}

//export iw_pd_dealloc
func iw_pd_dealloc(h uint64) int32 { return int32(device().DeallocPD(verbs.Handle(h))) }

//export iw_mr_register
func iw_mr_register(pd uint64, addr unsafe.Pointer, n, iova uint64, access uint32, to *uint64, key *uint32) int32 {
	h, k, errno := device().RegisterMR(verbs.Handle(pd), addr, n, iova, access)
	*key = k
	return give(to, h, errno)
}

//export iw_mr_deregister
func iw_mr_deregister(h uint64) int32 { return int32(device().DeregisterMR(verbs.Handle(h))) }

//export iw_mr_reregister
func iw_mr_reregister(h uint64, flags uint32, pd uint64, addr unsafe.Pointer, n uint64, access uint32) int32 {
	return int32(device().ReregisterMR(verbs.Handle(h), flags, verbs.Handle(pd), addr, n, access))
}

//export iw_mw_alloc
func iw_mw_alloc(pd uint64, kind uint32, to *uint64, rkey *uint32) int32 {
	h, r, errno := device().AllocWindow(verbs.Handle(pd), kind)
	*rkey = r
	return give(to, h, errno)
}

//export iw_mw_dealloc
func iw_mw_dealloc(h uint64) int32 { return int32(device().DeallocWindow(verbs.Handle(h))) }

//export iw_channel_open
func iw_channel_open(fd int32, waiters unsafe.Pointer, to *uint64) int32 {
	h, errno := device().OpenChannel(int(fd), wakes(waiters))
	return give(to, h, errno)
}

//export iw_channel_close
func iw_channel_close(h uint64) int32 { return int32(device().CloseChannel(verbs.Handle(h))) }

//export iw_channel_next
func iw_channel_next(h uint64, token *uint64) int32 {
	t, errno := device().NextCQ(verbs.Handle(h))
	*token = t
	return int32(errno)
}

//export iw_cq_create
func iw_cq_create(context, channel uint64, depth int32, token uint64, to *uint64) int32 {
	h, errno := device().CreateCQ(verbs.Handle(context), verbs.Handle(channel), int(depth), token)
	return give(to, h, errno)
}

//export iw_cq_resize
func iw_cq_resize(h uint64, depth int32) int32 {
	return int32(device().ResizeCQ(verbs.Handle(h), int(depth)))
}

//export iw_cq_destroy
func iw_cq_destroy(h uint64) int32 { return int32(device().DestroyCQ(verbs.Handle(h))) }

//export iw_cq_arm
func iw_cq_arm(h uint64, solicitedOnly int32) int32 {
	return int32(device().Arm(verbs.Handle(h), solicitedOnly != 0))
}

//export iw_cq_poll
func iw_cq_poll(h uint64, n int32, wcs unsafe.Pointer) int32 {
	if n <= 0 || wcs == nil { // as of a program that knows that there is none
		return 0
	}
	return int32(device().Poll(verbs.Handle(h), unsafe.Slice((*verbs.WC)(wcs), n)))
}

//export iw_srq_create
func iw_srq_create(context, pd uint64, depth, sges int32, token uint64, to *uint64) int32 {
	h, errno := device().CreateSRQ(verbs.Handle(context), verbs.Handle(pd), int(depth), sges, token)
	return give(to, h, errno)
}

//export iw_srq_modify
func iw_srq_modify(h uint64, depth, limit int32) int32 {
	return int32(device().ModifySRQ(verbs.Handle(h), int(depth), int(limit)))
}

//export iw_srq_query
func iw_srq_query(h uint64, depth, limit *int32) int32 {
	d, l, errno := device().QuerySRQ(verbs.Handle(h))
	*depth, *limit = int32(d), int32(l)
	return int32(errno)
}

//export iw_srq_destroy
func iw_srq_destroy(h uint64) int32 { return int32(device().DestroySRQ(verbs.Handle(h))) }

//export iw_srq_post
func iw_srq_post(h uint64, wr unsafe.Pointer, bad *unsafe.Pointer) int32 {
	b, errno := device().PostSRQ(verbs.Handle(h), (*verbs.RecvWR)(wr))
	return blame(bad, b, errno)
}
