package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer"
	"github.com/goiwarp/iwarp/internal/transfer/message"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// nqnOf is the name that a disk has by default, of which its serial number is made.
func nqnOf(t *testing.T, disk string) string {
	t.Helper()
	c := &diskCmd{Disk: []string{disk}, BlockSize: 512, ids: make([][16]byte, 1)}
	all, err := c.namespaces()
	if err != nil {
		t.Fatal(err)
	}
	defer closeDisks(all)
	return defaultNQN(all[0], disk)
}

// TestDiskNames has disks of one name in two directories be two, and the same after a restart, however the path is
// written. One in memory is never the same.
func TestDiskNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "disk"), make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	a, again, b := nqnOf(t, filepath.Join("a", "disk")), nqnOf(t, filepath.Join(here, "a", "disk")),
		nqnOf(t, filepath.Join("b", "disk"))
	if a != again || a == b {
		t.Errorf("%s, %s, %s", a, again, b)
	}
	if one, two := nqnOf(t, "1M"), nqnOf(t, "1M"); one == two {
		t.Error("two disks in memory have one name")
	}
}

// TestOwnAddress takes an address of IPv4 before one of IPv6, and neither that of a port that is down nor, of IPv6, one
// of the link.
func TestOwnAddress(t *testing.T) {
	port := func(flags net.Flags, addrs ...string) hostPort {
		p := hostPort{Flags: flags}
		for _, a := range addrs {
			p.addrs = append(p.addrs, netip.MustParseAddr(a))
		}
		return p
	}
	local := port(net.FlagUp|net.FlagLoopback, "127.0.0.1", "::1")
	for want, ports := range map[string][]hostPort{
		"127.0.0.1":   {local, port(0, "192.0.2.1"), port(net.FlagUp, "fe80::1")},
		"192.0.2.1":   {local, port(net.FlagUp, "2001:db8::1", "192.0.2.1")},
		"2001:db8::1": {local, port(net.FlagUp, "fe80::1", "2001:db8::1", "2001:db8::2")},
	} {
		if got := ownAddress(ports); got.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// TestHostPorts finds the interfaces of this machine, with the addresses of the loopback interface.
func TestHostPorts(t *testing.T) {
	ports, err := hostPorts()
	testrig.Must(t, err)
	all, err := net.Interfaces()
	testrig.Must(t, err)
	if len(ports) != len(all) {
		t.Fatalf("%d ports of %d interfaces", len(ports), len(all))
	}
	for i, p := range ports {
		loopback := p.Flags&net.FlagLoopback != 0
		if p.Flags != all[i].Flags || loopback && p.Flags&net.FlagUp != 0 && len(p.addrs) == 0 {
			t.Errorf("%+v, of %+v", p, all[i])
		}
		for _, a := range p.addrs {
			if loopback != a.IsLoopback() {
				t.Errorf("%s has %v", all[i].Name, a)
			}
		}
	}
}

// A cutDisk is in memory, and its connections are reset by the first who reads from it.
type cutDisk struct {
	*target.Memory
	net.Listener
	once  sync.Once
	mu    sync.Mutex
	conns []net.Conn
}

// Accept remembers the connection.
func (d *cutDisk) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.conns = append(d.conns, c)
	}
	return c, err
}

// Close closes the disk, of which there is nothing to close.
func (d *cutDisk) Close() error { return d.Listener.Close() }

// ReadAt cuts, once.
func (d *cutDisk) ReadAt(p []byte, off int64) (int, error) {
	d.once.Do(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, c := range d.conns {
			_ = errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close())
		}
	})
	return d.Memory.ReadAt(p, off)
}

// TestDiskLost has the connections of a --read reset amid a command: that is told at once, and that they were made
// again, and the copy is whole.
func TestDiskLost(t *testing.T) {
	m, err := target.NewMemory(1<<20, 512)
	testrig.Must(t, err)
	data := bytes.Repeat([]byte("what is on the disk, and more\n\n\n"), 1<<15)
	_, err = m.WriteAt(data, 0)
	testrig.Must(t, err)
	under, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	disk := &cutDisk{Memory: m, Listener: under}
	served, err := target.New(target.Config{NQN: "nqn.2026-11.org.example:cut",
		Namespaces: []target.Namespace{{Backend: disk, Name: "cut"}}})
	testrig.Must(t, err)
	ln := new(iwarp.ListenConfig).NewListener(disk)
	go served.Serve(context.Background(), ln)
	defer func() { testrig.Must(t, errors.Join(ln.Close(), served.Shutdown(context.Background()))) }()
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "copy")
	args := []string{"disk", "--read", "nvme://" + under.Addr().String() + "/nqn.2026-11.org.example:cut", "-o", file}
	if status := run(args, streams{&out, &errs}); status != statusFine {
		t.Fatalf("status %d: %s", status, errs.Bytes())
	}
	lost, back, _ := strings.Cut(errs.String(), "\n")
	if !strings.HasPrefix(lost, "iwarp: disk: --read: the target is lost, and is tried for 1m0s: ") ||
		!strings.HasSuffix(back, "iwarp: disk: --read: connected again\n") {
		t.Errorf("it says %q", errs.String())
	}
	if want := fmt.Sprintf("SHA-256 %x", sha256.Sum256(data)); !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

// TestToldInLines has what peers say of themselves stay in its line and column.
func TestToldInLines(t *testing.T) {
	var out, errs bytes.Buffer
	testrig.Must(t, printTold(&out, "of a\nmodel", [][]string{{"ONE", "TWO"}, {"a\tb", "c\nd"}}))
	if want := "of a\\u000amodel\nONE       TWO\na\\u0009b  c\\u000ad\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	p := &cpPrinter{std: streams{&out, &errs}, verbose: true, progress: copyLine{progressLine: newProgressLine(&errs)}}
	p.event(&transfer.Outcome{Path: "a", Code: message.Failed, Text: "no\niwarp: all is well"})
	p.event(&transfer.Outcome{Path: "b", Text: "yes\nno"}) // a copy, which lacks something
	p.event(&transfer.Outcome{Path: "c\nd"})
	if n := strings.Count(errs.String(), "\n"); n != 2 || !strings.Contains(errs.String(), "no; iwarp") ||
		!strings.Contains(errs.String(), "yes; no") {
		t.Errorf("%q", errs.String())
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%q", out.String())
	}
}
