//go:build interop

package interop_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// The second one of two guests that are joined. The first has guestIP.
const (
	otherIP  = "192.168.79.3"
	otherMAC = "52:54:00:77:01:03"
)

// setWireUp gives a guest's second card to siw, too.
func setWireUp(ip, mac string) string {
	return "ip link set eth1 address " + mac + " && ip addr add " + ip + "/24 dev eth1 && ip link set eth1 up &&" +
		" rdma link add siw1 type siw netdev eth1"
}

// A pair is two guests whose second cards are joined. What passes there is in pcap: both ends of each connection are
// Linux's, and so are the segments.
type pair struct {
	server, client *Guest
	pcap           string
}

// bootPair boots them. Such tests must not run in parallel, as there is room for two guests only. siw would now and then
// miss the first FPDU of a connection (TestAcceptRace), which none of its ULPs sends again.
func bootPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{pcap: filepath.Join(t.TempDir(), "wire.pcap")}
	one, other := listenLink(t), listenLink(t)
	go join(one.ln, other.ln)
	p.server = Boot(t, Options{NVMe: true, SIW: "accept_kick=1", Link: one.path, Pcap: p.pcap})
	p.client = Boot(t, Options{NVMe: true, SIW: "accept_kick=1", Link: other.path})
	p.server.Start(t, setWireUp(guestIP, guestMAC)).WantSuccess(t, 20*time.Second)
	p.client.Start(t, setWireUp(otherIP, otherMAC)).WantSuccess(t, 20*time.Second)
	return p
}

// wantProbed asks all that iwarp probe asks of whom serves rpingPort. A kernel's server takes siw's word for what it is,
// and takes no harm.
func (p *pair) wantProbed(t *testing.T) {
	t.Helper()
	report, err := probe.Run(t.Context(), probe.Config{Addr: p.server.server()})
	testrig.Must(t, err)
	if len(report.Resembles) == 0 || report.Preset != "siw" {
		t.Errorf("what answers is not like siw:\n%s", conclusions(report))
	}
	p.server.wantSane(t)
}

// join carries the frames between two links, until one of them ends.
func join(one, other net.Listener) {
	a, err := one.Accept()
	if err != nil {
		return
	}
	defer a.Close()
	b, err := other.Accept()
	if err != nil {
		return
	}
	defer b.Close()
	go io.Copy(a, b)
	io.Copy(b, a)
}
