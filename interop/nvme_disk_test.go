//go:build interop

package interop_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/target"
)

const (
	ourNQN   = "nqn.2026-11.org.example:disk"
	diskSize = 32 << 20
)

// cuts are the connections that can be cut, of a listener or a dialer.
type cuts struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cuts) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
}

// all resets every connection that there was.
func (c *cuts) all() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	c.conns = nil
}

// A cutListener is a listener whose connections can be cut.
type cutListener struct {
	net.Listener
	cuts *cuts
}

// Accept remembers the connection.
func (l cutListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.cuts.add(conn)
	}
	return conn, err
}

// A counted disk counts what is written to it.
type counted struct {
	*target.File
	writes atomic.Int64
}

// WriteAt counts.
func (c *counted) WriteAt(p []byte, off int64) (int, error) {
	c.writes.Add(1)
	return c.File.WriteAt(p, off)
}

// A servedDisk is a file that our target offers, where the guest reaches it.
type servedDisk struct {
	disk *counted
	path string
	port string
	cuts
	ln     *iwarp.Listener
	target *target.Target
}

// newDisk makes a file.
func newDisk(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "disk")
	testrig.Must(t, target.Create(path, diskSize, 512))
	return path
}

// serveDisk offers a file at a port of ours, or at any if that is "0", until the test ends.
func serveDisk(t *testing.T, path, port string) *servedDisk {
	t.Helper()
	backend, err := target.OpenFile(path, 512, false)
	testrig.Must(t, err)
	d := &servedDisk{path: path, disk: &counted{File: backend}}
	d.target, err = target.New(target.Config{NQN: ourNQN,
		Namespaces: []target.Namespace{{Backend: d.disk, Name: "disk"}}})
	testrig.Must(t, err)
	under, err := net.Listen("tcp", "127.0.0.1:"+port)
	testrig.Must(t, err)
	d.ln = new(iwarp.ListenConfig).NewListener(cutListener{under, &d.cuts})
	_, d.port, err = net.SplitHostPort(under.Addr().String())
	testrig.Must(t, err)
	go d.target.Serve(context.Background(), d.ln)
	t.Cleanup(func() { _ = d.shutDown() })
	return d
}

// shutDown ends the target in order, and lets go of the file.
func (d *servedDisk) shutDown() error {
	_ = d.ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := d.target.Shutdown(ctx)
	_ = d.disk.Close()
	return err
}

// written waits for so many more writes, and reports whether they came while a program was running.
func (d *servedDisk) written(p *Proc, more int64) bool {
	want := d.disk.writes.Load() + more
	for d.disk.writes.Load() < want && !p.ended() {
		time.Sleep(time.Millisecond)
	}
	return d.disk.writes.Load() >= want
}

// wantDigest holds that the guest has read what our file has.
func (d *servedDisk) wantDigest(t *testing.T, p *Proc) {
	t.Helper()
	wantDigest(t, d.path, p)
}

// wantDigest holds that the guest has read what a file has.
func wantDigest(t *testing.T, path string, p *Proc) {
	t.Helper()
	f, err := os.Open(path)
	testrig.Must(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	testrig.Must(t, err)
	p.WantOutput(t, fmt.Sprintf("DIGEST %x", h.Sum(nil)))
}
