//go:build linux && (amd64 || arm64) && cgo && interposer

package main

import "C"

import (
	"unsafe"

	"github.com/goiwarp/iwarp/internal/programs/datagram"
	"github.com/goiwarp/iwarp/internal/programs/verbs"
)

//export iw_ud_create
func iw_ud_create(attr unsafe.Pointer, to *uint64, number *uint32) int32 {
	h, n, errno := device().CreateUD((*qpAttr)(attr).verbs())
	*number = n
	return give(to, h, errno)
}

//export iw_ud_modify
func iw_ud_modify(h uint64, state uint32) int32 {
	return int32(device().ModifyUD(verbs.Handle(h), state))
}

//export iw_ud_key
func iw_ud_key(h uint64, qkey uint32) int32 {
	return int32(device().SetQKey(verbs.Handle(h), qkey))
}

//export iw_ud_query
func iw_ud_query(h uint64, state *uint32) int32 {
	s, errno := device().QueryUD(verbs.Handle(h))
	*state = s
	return int32(errno)
}

//export iw_ud_destroy
func iw_ud_destroy(h uint64) int32 { return int32(device().DestroyUD(verbs.Handle(h))) }

//export iw_ud_send
func iw_ud_send(h uint64, wr unsafe.Pointer, bad *unsafe.Pointer) int32 {
	b, errno := device().SendDatagrams(verbs.Handle(h), (*verbs.SendWR)(wr))
	return blame(bad, b, errno)
}

//export iw_ud_send_all
func iw_ud_send_all(h uint64, wr unsafe.Pointer) int32 {
	return int32(device().SendAllDatagrams(verbs.Handle(h), (*verbs.SendWR)(wr)))
}

//export iw_ud_recv
func iw_ud_recv(h uint64, wr unsafe.Pointer, bad *unsafe.Pointer) int32 {
	b, errno := device().RecvDatagrams(verbs.Handle(h), (*verbs.RecvWR)(wr))
	return blame(bad, b, errno)
}

//export iw_ah_create
func iw_ah_create(pd uint64, local, peer unsafe.Pointer, to *uint64) int32 {
	h, errno := device().CreateAH(verbs.Handle(pd), *(*verbs.GID)(local), *(*verbs.GID)(peer))
	return give(to, h, errno)
}

//export iw_ah_destroy
func iw_ah_destroy(h uint64) int32 { return int32(device().DestroyAH(verbs.Handle(h))) }

//export iw_ah_answer
func iw_ah_answer(route, local, peer unsafe.Pointer) int32 {
	l, p, errno := device().AnswerAH((*datagram.Route)(route))
	*(*verbs.GID)(local), *(*verbs.GID)(peer) = l, p
	return int32(errno)
}
