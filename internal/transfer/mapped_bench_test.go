//go:build unix

package transfer

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// benchLen is how many bytes the file of the benchmark has.
const benchLen = 256 << 20

// BenchmarkMapped sends a file that is in memory already over loopback as a copy does, block by block with its digest:
// in turns from registered blocks into which it is read, and from a mapping of it that is registered. docs/dev/cp.md
// has what came of it.
func BenchmarkMapped(b *testing.B) {
	f := benchFile(b)
	qp, to := benchPair(b)
	blocks, err := qp.PD().Register(make([]byte, window*message.MaxBlock), 0)
	testrig.Must(b, err)
	var spent [2]time.Duration
	var digests [2][sha256.Size]byte
	b.SetBytes(2 * benchLen)
	for b.Loop() {
		for i, pass := range []func() []byte{
			func() []byte { return passRead(b, f, qp, blocks, to) },
			func() []byte { return passMapped(b, f, qp, to) },
		} {
			began := time.Now()
			digests[i] = sha256.Sum256(pass())
			spent[i] += time.Since(began)
		}
	}
	if digests[0] != digests[1] {
		b.Error("the digests differ")
	}
	b.ReportMetric(float64(b.N)*benchLen/(1<<20)/spent[0].Seconds(), "read-MiB/s")
	b.ReportMetric(float64(b.N)*benchLen/(1<<20)/spent[1].Seconds(), "mapped-MiB/s")
	b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "mapped/read")
}

// passRead reads each block, and returns the digests.
func passRead(b *testing.B, f *os.File, qp *iwarp.QP, blocks *iwarp.MR, to iwarp.Remote) (digests []byte) {
	for at := 0; at < benchLen; at += message.MaxBlock {
		slot := at % blocks.Len()
		block := blocks.Bytes()[slot:][:message.MaxBlock]
		_, err := f.ReadAt(block, int64(at))
		testrig.Must(b, err)
		digests = append(digests, digestAndWrite(b, qp, block, blocks.Slice(slot, message.MaxBlock), to)...)
	}
	return digests
}

// passMapped maps the file for once, as a copy would.
func passMapped(b *testing.B, f *os.File, qp *iwarp.QP, to iwarp.Remote) (digests []byte) {
	mapped, err := unix.Mmap(int(f.Fd()), 0, benchLen, unix.PROT_READ, unix.MAP_SHARED)
	testrig.Must(b, err)
	defer func() { testrig.Must(b, unix.Munmap(mapped)) }()
	mr, err := qp.PD().Register(mapped, 0)
	testrig.Must(b, err)
	defer mr.Deregister()
	for at := 0; at < benchLen; at += message.MaxBlock {
		digests = append(digests, digestAndWrite(b, qp, mapped[at:][:message.MaxBlock],
			mr.Slice(at, message.MaxBlock), to)...)
	}
	return digests
}

func digestAndWrite(b *testing.B, qp *iwarp.QP, block []byte, from iwarp.SGE, to iwarp.Remote) []byte {
	sum := sha256.Sum256(block)
	_, err := qp.Write(b.Context(), from, to)
	testrig.Must(b, err)
	return sum[:]
}

func benchFile(b *testing.B) *os.File {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	testrig.Must(b, err)
	b.Cleanup(func() { _ = f.Close() })
	source, block := rand.NewChaCha8([32]byte{1}), make([]byte, message.MaxBlock)
	for range benchLen / message.MaxBlock {
		_, _ = source.Read(block)
		_, err = f.Write(block)
		testrig.Must(b, err)
	}
	return f
}

// benchPair connects over loopback, and returns where the peer takes a block.
func benchPair(b *testing.B) (*iwarp.QP, iwarp.Remote) {
	ln, err := iwarp.Listen(b.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(b, err)
	b.Cleanup(func() { _ = ln.Close() })
	came := make(chan *iwarp.QP, 1)
	go func() {
		req, err := ln.Accept(b.Context())
		testrig.Must(b, err)
		qp, err := req.Accept(b.Context(), iwarp.AcceptConfig{})
		testrig.Must(b, err)
		came <- qp
	}()
	qp, err := (&iwarp.Dialer{}).Dial(b.Context(), "tcp", ln.Addr().String())
	testrig.Must(b, err)
	peer := <-came
	b.Cleanup(func() { _, _ = qp.Abort(), peer.Abort() })
	mr, err := peer.PD().Register(make([]byte, message.MaxBlock), iwarp.RemoteWrite)
	testrig.Must(b, err)
	return qp, mr.Remote(0)
}
