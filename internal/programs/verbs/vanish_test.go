//go:build linux && (amd64 || arm64)

package verbs

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// vanished is a region of a page that the program protects, or unmaps, after it has registered it.
func (p *program) vanished() *region {
	p.t.Helper()
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = syscall.Munmap(page) })
	r := &region{memory: page[:64]}
	var errno syscall.Errno
	r.mr, r.key, errno = p.d.RegisterMR(p.pd, unsafe.Pointer(&page[0]), 64, r.at(),
		accessLocalWrite|accessRemoteWrite|accessRemoteRead)
	must(p.t, errno)
	if err := syscall.Mprotect(page, syscall.PROT_NONE); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// TestVanishedDatagram sends from memory that is gone, and receives into it: an error as with any other memory that may
// not be used.
func TestVanishedDatagram(t *testing.T) {
	a := newDatagrams(t)
	must(t, a.post(a.to(a.number, *a.vanished().sge())))
	want(t, "the Send", a.completion().Status, statusOf(iwarp.StatusLocalProtection))
	b, c := newDatagrams(t), newDatagrams(t)
	_, errno := b.d.RecvDatagrams(b.qp, &RecvWR{ID: 5, SGL: b.vanished().sge(), SGEs: 1})
	must(t, errno)
	must(t, c.post(c.to(b.number)))
	want(t, "the receive", b.completion().Status, statusOf(iwarp.StatusLocalProtection))
}

// TestVanishedOfPeer reads and writes memory of the peer's that is gone: the request fails, and the peer's program goes
// on.
func TestVanishedOfPeer(t *testing.T) {
	for _, opcode := range []uint32{wrWrite, wrRead} {
		a, b := met(t)
		a.send(1, opcode, a.region(strings.Repeat("x", 64), accessLocalWrite), b.vanished())
		if got := a.completion(); got.ID != 1 || got.Status == 0 {
			t.Errorf("operation %d: %+v", opcode, got)
		}
	}
}
