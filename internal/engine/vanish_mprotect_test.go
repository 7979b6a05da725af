//go:build linux || darwin

package engine

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// vanishes puts memory in the place of a twin's first, of which all from an offset on is gone.
func (n *twin) vanishes(t *testing.T) (gone int) {
	t.Helper()
	gone = 70000 / os.Getpagesize() * os.Getpagesize()
	b, err := syscall.Mmap(-1, 0, twinMemory, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	copy(b, n.memory[0])
	n.regions[0], n.memory[0] = n.regionOf(b, memory.Options{Access: remoteAll, PD: testPD, Vanishes: true}), b[:gone]
	if err := syscall.Mprotect(b[gone:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return gone
}

// Memory that is there again in time is sent from where it had vanished on.
func TestVanishedForAWhile(t *testing.T) {
	n := newTwins(t)[0]
	gone := n.vanishes(t)
	n.g.reset(0, 0)
	n.posts(1, OpWrite, [3][3]int{{0, gone - 10000, 20000}})
	if !n.Machine.nextFPDU(n.g) {
		t.Fatal("nothing is built")
	}
	if sent := n.Machine.Stats().Sent[rdmap.OpWrite].Bytes; sent == 0 || sent > 10000 {
		t.Fatalf("%d bytes are built of the 10000 that are there", sent)
	}
	b := n.memory[0][:gone+10000]
	if err := syscall.Mprotect(b[gone:cap(b)], syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	for n.Machine.nextFPDU(n.g) {
	}
	if sent := n.Machine.Stats().Sent[rdmap.OpWrite].Bytes; sent != 20000 || n.Machine.State() != RTS {
		t.Errorf("%d bytes are built, in state %v", sent, n.Machine.State())
	}
}

// ended expects the end of a connection whose memory has vanished.
func (c twins) ended(t *testing.T, id uint64, status Status) {
	t.Helper()
	c.do(func(n *twin) {
		n.wantCause(rdmap.CodeLocalCatastrophic, false)
		if id != 0 {
			if got := n.done[0]; got.ID != id || got.Status != status {
				t.Errorf("completion %d: %v, want %d: %v", got.ID, got.Status, id, status)
			}
		}
	})
}

// What lies in memory that is gone is not sent, in the middle of a message or at its beginning; whole FPDUs are sent of
// what lies before it, and a Terminate.
func TestVanishedSource(t *testing.T) {
	for _, marked := range []bool{false, true} {
		for _, crc := range []bool{false, true} {
			for _, op := range []Op{OpSend, OpWrite, OpRead} {
				for _, before := range []int{0, 10, 30000} {
					t.Run(fmt.Sprintf("%v of %d bytes that are there, markers %t, CRC %t",
						op, before, marked, crc), func(t *testing.T) {
						c := newTwins(t, func(s *setup) {
							s.MarkersSend, s.CRC = marked, crc
							aligned(1448, marked)(s)
						})
						c.do(func(n *twin) {
							from := n.vanishes(t) - before
							n.posts(1, op, [3][3]int{{0, from, 20000 + before}})
						})
						for range 5 {
							a, b := c[0].output(), c[1].output()
							if k := max(len(b)-120, 0); len(a) != len(b) || !bytes.Equal(a[:k], b[:k]) {
								t.Fatal("other bytes in the middle than by itself")
							}
						}
						if op == OpRead {
							c.ended(t, 0, 0)
						} else {
							c.ended(t, 1, StatusLocalProtection)
						}
						c.do(func(n *twin) { n.comes(write(1, 0, nil)); n.arrives(0) })
						if got := c[0].Machine.Stats().TerminatesSent[rdmap.CodeLocalCatastrophic]; got != 1 {
							t.Errorf("%d Terminates", got)
						}
					})
				}
			}
		}
	}
}

// What is for memory that is gone ends the connection: a Write, a Read Response, and a Send, whose receive says why.
func TestVanishedSink(t *testing.T) {
	for _, op := range []rdmap.Opcode{rdmap.OpWrite, rdmap.OpReadResponse, rdmap.OpSend} {
		t.Run(op.String(), func(t *testing.T) {
			c := newTwins(t)
			c.do(func(n *twin) {
				from := n.vanishes(t) - 3000
				sink := SGE{Region: n.regions[0], Offset: from, Length: 6000}
				r := work(2, OpRead, sink)
				r.RemoteSTag = 7
				n.post(r)
				n.output()
				n.receive(3, sink)
				for at := 0; at < 6000; at += 1000 {
					f := message(op, bytes.Repeat([]byte{0xee}, 1000))
					if f.H.Last = at == 5000; op == rdmap.OpSend {
						f.H.MO = uint32(at)
					} else {
						f.H.STag, f.H.TO = n.regions[0].STag(), uint64(from+at)
					}
					n.comes(f)
				}
				n.arrives(0)
			})
			c.do(func(n *twin) {
				n.wantCause(rdmap.CodeLocalCatastrophic, false)
				if tail := n.memory[0][len(n.memory[0])-3000:]; !bytes.Equal(tail, bytes.Repeat([]byte{0xee}, 3000)) {
					t.Error("what came before is not in place")
				}
			})
		})
	}
}
