//go:build unix

package iwarp_test

import (
	"cmp"
	"net"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/procstat"
)

// BenchmarkPolled has one goroutine be both ends of a message of 64 bytes there and back, and poll for it: that is the
// way of a message without any wait for a goroutine (with -cpu 1). Over plain TCP it polls the socket in the same way,
// for a message as large, and for one with as many bytes as the FPDU.
func BenchmarkPolled(b *testing.B) {
	const size, framed = 64, 2 + 18 + 64 + 4 // RFC 5044, section 3, and RFC 5041, section 4.2
	for name, n := range map[string]int{"tcp": size, "tcp, as many bytes": framed} {
		b.Run(name, func(b *testing.B) {
			var there, back polledTCP
			there.conn, back.conn = polledPair(b)
			msg := make([]byte, n)
			b.SetBytes(size)
			b.ReportAllocs()
			used := procstat.CPUTime()
			for b.Loop() {
				there.send(b, msg)
				back.receive(b, msg)
				back.send(b, msg)
				there.receive(b, msg)
			}
			b.ReportMetric(float64(procstat.CPUTime()-used)/float64(b.N)/1e3, "us-cpu/op")
		})
	}
	b.Run("rdma", func(b *testing.B) {
		r := newBenchRig(b, iwarp.OpSend, size, 4)
		ends := [2]*rig.End{r.ini, r.res}
		bufs := [2]*iwarp.MR{r.local, r.remote}
		b.SetBytes(size)
		b.ReportAllocs()
		used := procstat.CPUTime()
		for b.Loop() {
			for i, from := range ends {
				to := ends[1-i]
				failed := to.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{bufs[1-i].Slice(0, size)}})
				if failed == nil {
					failed = from.PostSend(&iwarp.SendWR{Op: iwarp.OpSend,
						SGL: []iwarp.SGE{bufs[i].Slice(0, size)}, Unsignaled: true})
				}
				for failed == nil && to.RecvCQ().Poll(r.wc[:1]) == 0 {
				}
				if failed = cmp.Or(failed, r.wc[0].Err()); failed != nil { // must would take as long as a message
					b.Fatal(failed)
				}
			}
		}
		b.ReportMetric(float64(procstat.CPUTime()-used)/float64(b.N)/1e3, "us-cpu/op")
	})
}

// polledPair is a TCP connection.
func polledPair(b *testing.B) (one, other *net.TCPConn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(b, err)
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	rig.Must(b, err)
	d, err := ln.Accept()
	rig.Must(b, err)
	b.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// polledTCP is one end of it.
type polledTCP struct {
	conn *net.TCPConn
	raw  syscall.RawConn
	b    []byte
	n    int
	do   func(fd uintptr)
}

func (p *polledTCP) send(b *testing.B, msg []byte) {
	if _, err := p.conn.Write(msg); err != nil {
		b.Fatal(err)
	}
}

func (p *polledTCP) receive(b *testing.B, msg []byte) {
	if p.raw == nil {
		raw, err := p.conn.SyscallConn()
		rig.Must(b, err)
		p.raw, p.do = raw, func(fd uintptr) { p.n, _ = syscall.Read(int(fd), p.b) }
	}
	for p.b = msg; len(p.b) > 0; {
		if err := p.raw.Control(p.do); err != nil {
			b.Fatal(err)
		}
		p.b = p.b[max(p.n, 0):]
	}
}
