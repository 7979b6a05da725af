//go:build linux && (amd64 || arm64) && cgo && interposer

package main

import "C"

import (
	"syscall"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/programs/verbs"
)

// qpAttr is struct iw_qp_attr of engine.h.
type qpAttr struct {
	Context, PD, SendCQ, RecvCQ, SRQ, Token  uint64
	SendDepth, RecvDepth, SendSGEs, RecvSGEs int32
	MaxInline, SignalAll                     int32
}

func (a *qpAttr) verbs() verbs.QPAttr {
	return verbs.QPAttr{
		Context: verbs.Handle(a.Context), PD: verbs.Handle(a.PD),
		SendCQ: verbs.Handle(a.SendCQ), RecvCQ: verbs.Handle(a.RecvCQ), SRQ: verbs.Handle(a.SRQ),
		SendDepth: int(a.SendDepth), RecvDepth: int(a.RecvDepth), SendSGEs: a.SendSGEs, RecvSGEs: a.RecvSGEs,
		MaxInline: int(a.MaxInline), SignalAll: a.SignalAll != 0, Token: a.Token,
	}
}

//export iw_qp_create
func iw_qp_create(attr unsafe.Pointer, to *uint64, number *uint32) int32 {
	h, n, errno := device().CreateQP((*qpAttr)(attr).verbs())
	*number = n
	return give(to, h, errno)
}

//export iw_qp_modify
func iw_qp_modify(h uint64, state uint32) int32 {
	return int32(device().ModifyQP(verbs.Handle(h), state))
}

//export iw_qp_allow
func iw_qp_allow(h uint64, access uint32) int32 {
	return int32(device().AllowQP(verbs.Handle(h), access))
}

//export iw_refused
func iw_refused(call *C.char, number uint32, errno int32, why, advice *C.char) int32 {
	device().Refused(verbs.Refusal{
		Call: C.GoString(call), QP: number, Errno: syscall.Errno(errno), Why: C.GoString(why),
		Advice: C.GoString(advice),
	})
	return 0
}

// path is struct iw_path of engine.h.
type path struct {
	Local, Peer verbs.GID
	Number      uint32
	IRD         int32
}

//export iw_qp_meet
func iw_qp_meet(h uint64, to unsafe.Pointer) int32 {
	p := (*path)(to)
	return int32(device().Meet(verbs.Handle(h), verbs.Path{Local: p.Local, Peer: p.Peer,
		Number: p.Number, IRD: int(p.IRD)}))
}

//export iw_qp_query
func iw_qp_query(h uint64, state *uint32, ird, ord *int32) int32 {
	s, i, o, errno := device().QueryQP(verbs.Handle(h))
	*state, *ird, *ord = s, int32(i), int32(o)
	return int32(errno)
}

//export iw_qp_linked
func iw_qp_linked(h uint64) int32 {
	if device().Linked(verbs.Handle(h)) {
		return 1
	}
	return 0
}

//export iw_qp_destroy
func iw_qp_destroy(h uint64) int32 { return int32(device().DestroyQP(verbs.Handle(h))) }

//export iw_qp_send
func iw_qp_send(h uint64, wr unsafe.Pointer, bad *unsafe.Pointer) int32 {
	b, errno := device().PostSend(verbs.Handle(h), (*verbs.SendWR)(wr))
	return blame(bad, b, errno)
}

//export iw_qp_send_all
func iw_qp_send_all(h uint64, wr unsafe.Pointer) int32 {
	return int32(device().PostAll(verbs.Handle(h), (*verbs.SendWR)(wr)))
}

//export iw_qp_recv
func iw_qp_recv(h uint64, wr unsafe.Pointer, bad *unsafe.Pointer) int32 {
	b, errno := device().PostRecv(verbs.Handle(h), (*verbs.RecvWR)(wr))
	return blame(bad, b, errno)
}

//export iw_qp_find
func iw_qp_find(number uint32, to *uint64) int32 {
	h, errno := device().FindQP(number)
	return give(to, h, errno)
}

//export iw_qp_send_ops
func iw_qp_send_ops(datagrams int32, to *uint64) int32 {
	*to = device().SendOps(datagrams != 0)
	return 0
}
