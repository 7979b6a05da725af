//go:build interop

package interop_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// record writes a capture of a connection in which the two ends sent these
// pieces, each as one segment: what no program here sends, or not in such
// segments.
func record(t testing.TB, pieces []piece) (pcap string) {
	t.Helper()
	pcap = filepath.Join(t.TempDir(), "recorded.pcap")
	f, err := os.Create(pcap)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := recorder{t: t, w: pcapgo.NewWriter(f)}
	if err := r.w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	r.segment(fromInitiator, layers.TCP{SYN: true}, nil)
	r.segment(fromResponder, layers.TCP{SYN: true, ACK: true}, nil)
	r.segment(fromInitiator, layers.TCP{ACK: true}, nil)
	for _, p := range pieces {
		r.segment(p.dir, layers.TCP{ACK: true, PSH: true}, p.bytes)
	}
	r.segment(fromInitiator, layers.TCP{ACK: true, FIN: true}, nil)
	r.segment(fromResponder, layers.TCP{ACK: true, FIN: true}, nil)
	return pcap
}

// A recorder knows what either end has to put into its next segment.
type recorder struct {
	t       testing.TB
	w       *pcapgo.Writer
	seq     [2]uint32
	elapsed time.Duration
}

var (
	recordedPorts = [2]layers.TCPPort{49152, 7174}
	recordedIPs   = [2]net.IP{{192, 0, 2, 1}, {192, 0, 2, 2}}
)

func (r *recorder) segment(dir direction, tcp layers.TCP, payload []byte) {
	r.t.Helper()
	tcp.SrcPort, tcp.DstPort = recordedPorts[dir], recordedPorts[dir.peer()]
	tcp.Seq, tcp.Ack, tcp.Window = r.seq[dir], r.seq[dir.peer()], 65535
	r.seq[dir] += uint32(len(payload))
	if tcp.SYN || tcp.FIN {
		r.seq[dir]++
	}
	ip := layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: recordedIPs[dir], DstIP: recordedIPs[dir.peer()]}
	if err := tcp.SetNetworkLayerForChecksum(&ip); err != nil {
		r.t.Fatal(err)
	}
	r.frame(&ip, &tcp, gopacket.Payload(payload))
}

func (r *recorder) frame(above ...gopacket.SerializableLayer) {
	r.t.Helper()
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	eth := layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: layers.EthernetTypeIPv4}
	buf, how := gopacket.NewSerializeBuffer(), gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, how, slices.Insert(above, 0, gopacket.SerializableLayer(&eth))...); err != nil {
		r.t.Fatal(err)
	}
	r.elapsed += time.Millisecond
	n := len(buf.Bytes())
	info := gopacket.CaptureInfo{Timestamp: time.Unix(0, 0).Add(r.elapsed), CaptureLength: n, Length: n}
	if err := r.w.WritePacket(info, buf.Bytes()); err != nil {
		r.t.Fatal(err)
	}
}
