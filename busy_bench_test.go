package iwarp_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/procstat"
)

// BenchmarkBusyQPs reads 64 bytes on each of many connections all the time, with a goroutine for each, and both ends in
// this process. Over plain TCP the request has as many bytes as a Read Request's header, and a goroutine of each
// connection answers.
func BenchmarkBusyQPs(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("tcp/%d", n), func(b *testing.B) { keepBusy(b, tcpReads(b, n)) })
		b.Run(fmt.Sprintf("rdma/%d", n), func(b *testing.B) { keepBusy(b, rdmaReads(b, n)) })
	}
}

// keepBusy calls all functions at once, each again and again, b.N times together.
func keepBusy(b *testing.B, reads []func() error) {
	var all sync.WaitGroup
	var begun atomic.Int64
	used := procstat.CPUTime()
	b.ResetTimer()
	for _, read := range reads {
		all.Go(func() {
			for begun.Add(1) <= int64(b.N) {
				rig.Should(b, read())
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(procstat.CPUTime()-used)/float64(b.N)/1e3, "us-cpu/op")
}

func rdmaReads(b *testing.B, n int) (reads []func() error) {
	c := newMany(b)
	c.grow(n)
	near, far := c.ini.MR(64*n, iwarp.LocalWrite), c.res.MR(64, iwarp.RemoteRead)
	for i := range n {
		qp := c.qps[2*i]
		reads = append(reads, func() error {
			_, err := qp.Read(b.Context(), near.Slice(64*i, 64), far.Remote(0))
			return err
		})
	}
	return reads
}

func tcpReads(b *testing.B, n int) (reads []func() error) {
	const request = 28 // bytes: RFC 5040, section 4.4
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(b, err)
	defer ln.Close()
	for range n {
		near, err := net.Dial("tcp", ln.Addr().String())
		rig.Must(b, err)
		far, err := ln.Accept()
		rig.Must(b, err)
		b.Cleanup(func() { near.Close(); far.Close() })
		go func() {
			var buf [64]byte
			for err := error(nil); err == nil; _, err = far.Write(buf[:]) {
				if _, err := io.ReadFull(far, buf[:request]); err != nil {
					return
				}
			}
		}()
		var buf [64]byte
		reads = append(reads, func() error {
			if _, err := near.Write(buf[:request]); err != nil {
				return err
			}
			_, err := io.ReadFull(near, buf[:])
			return err
		})
	}
	return reads
}
