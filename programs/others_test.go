//go:build linux && interposer

package programs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestValkey has Valkey serve over RDMA by its module, to the client of its own tests, which compares what it reads.
// IWARP_VALKEY names the directory of its sources, where both were built; Debian's package has no module.
func TestValkey(t *testing.T) {
	dir := os.Getenv("IWARP_VALKEY")
	if dir == "" {
		testrig.Lacks(t, "IWARP_VALKEY names no directory where Valkey was built")
	}
	l := built(t)
	run := func(t *testing.T) {
		port := freePort(t)
		server := startWords(t, l, nil, filepath.Join(dir, "src/valkey-server"), "--port", "0", "--appendonly", "no",
			"--dir", t.TempDir(), "--loadmodule", filepath.Join(dir, "src/valkey-rdma.so"),
			"--rdma-port", port, "--rdma-bind", "127.0.0.1")
		server.awaitListening(t, port)
		client := start(t, l, filepath.Join(dir, "tests/rdma/rdma-test")+" --thread 4 -h 127.0.0.1 -p "+port)
		client.awaitSuccess(t)
		if !strings.Contains(client.out.String(), "Valkey Over RDMA test [OK]") {
			t.Errorf("%s", client.out.String())
		}
		testrig.Must(t, server.Process.Signal(syscall.SIGTERM))
		server.awaitSuccess(t)
	}
	const line = "rdma-test --thread 4 -h IP"
	wantResults(t, "TestValkey", []result{ran(t, line, strings.Replace(filepath.Base(dir), "-", " ", 1), compared, run)})
	captured(t, line, 1, run)
}

// dats are providers of DAPL: by librdmacm, and one that connects by itself.
var dats = []struct {
	name, library, device string
	as                    Guise
}{
	{"cma", "libdaplofa.so.2", "INTERFACE 0", IWARP},
	{"scm", "libdaploscm.so.2", "iwarp0 1", RoCE},
}

// TestDAPL runs DAPL's dtest, which compares what it pings.
func TestDAPL(t *testing.T) {
	l := built(t)
	needs(t, "dtest")
	ip := host(t, true)
	var file strings.Builder
	for _, d := range dats {
		fmt.Fprintf(&file, "%s u2.0 nonthreadsafe default %s dapl.2.0 \"%s\" \"\"\n", d.name, d.library,
			strings.Replace(d.device, "INTERFACE", interfaceOf(t, ip), 1))
	}
	registry := filepath.Join(t.TempDir(), "dat.conf")
	testrig.Must(t, os.WriteFile(registry, []byte(file.String()), 0o666))
	t.Setenv("DAT_OVERRIDE", registry)
	var results []result
	for _, d := range dats {
		line := "dtest -P " + d.name + " -D -b 65536"
		run := func(t *testing.T) {
			t.Setenv(guiseVariable, string(d.as))
			server := start(t, l, line)
			server.awaitListening(t, "15828")
			client := start(t, l, line+" -h "+ip)
			client.awaitSuccess(t)
			server.awaitSuccess(t)
			if !strings.Contains(client.out.String(), "PASSED") {
				t.Errorf("%s", client.out.String())
			}
		}
		results = append(results, ran(t, line+" -h IP", version("dapl2-utils"), compared, run))
		captured(t, line, 2, run)
	}
	wantResults(t, "TestDAPL", results)
}

// interfaceOf is the interface that has an address.
func interfaceOf(t *testing.T, ip string) string {
	t.Helper()
	all, err := net.Interfaces()
	testrig.Must(t, err)
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.String() == ip {
				return i.Name
			}
		}
	}
	t.Fatalf("no interface has %s", ip)
	return ""
}

// TestNamespaces runs programs in two network namespaces, each with an address of its own.
func TestNamespaces(t *testing.T) {
	l := built(t)
	needs(t, "ip", "rping", "ib_write_bw")
	if os.Getuid() != 0 {
		testrig.Lacks(t, "network namespaces need root")
	}
	names := [2]string{fmt.Sprintf("iwarp-a-%d", os.Getpid()), fmt.Sprintf("iwarp-b-%d", os.Getpid())}
	for i, name := range names {
		ip(t, "netns", "add", name)
		t.Cleanup(func() { ip(t, "netns", "del", name) })
		ip(t, "-n", name, "link", "set", "lo", "up")
		if i == 1 {
			ip(t, "link", "add", "iw0", "netns", names[0], "type", "veth", "peer", "name", "iw0", "netns", name)
		}
	}
	for i, name := range names {
		ip(t, "-n", name, "addr", "add", fmt.Sprintf("10.99.0.%d/24", i+1), "dev", "iw0")
		ip(t, "-n", name, "link", "set", "iw0", "up")
	}
	var results []result
	for _, p := range []struct {
		port string
		pairing
	}{
		{"7174", pairing{"rdmacm-utils", "rping -s -a 10.99.0.1 -C 10 -V", "rping -c -a 10.99.0.1 -C 10 -V -v", compared, false, "rdma-ping-9:"}},
		{"18515", pairing{"perftest", "ib_write_bw -n 100", "ib_write_bw -n 100 10.99.0.1", rate, false, "65536"}},
	} {
		line := strings.Replace(p.client, "10.99.0.1", "IP", 1)
		results = append(results, ran(t, line+", in another network namespace", version(p.pkg), p.verified, func(t *testing.T) {
			server := start(t, l, "ip netns exec "+names[0]+" "+p.server)
			server.awaitListening(t, p.port)
			client := start(t, l, "ip netns exec "+names[1]+" "+p.client)
			client.await(t)
			server.await(t)
			p.judge(t, server, client)
		}))
	}
	wantResults(t, "TestNamespaces", results)
}

func ip(t *testing.T, arguments ...string) {
	t.Helper()
	if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		testrig.Lacks(t, fmt.Sprintf("ip %q: %v: %s", arguments, err, out))
	}
}
