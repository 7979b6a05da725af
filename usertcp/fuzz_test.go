package usertcp

import (
	"bytes"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// fuzzFlow returns taps with a flow between the stack and the played peer, which has acknowledged 1000 and grants 1000
// bytes more.
func fuzzFlow() (*taps, *flow) {
	t := newTaps(&PipeEnd{}, 1500)
	e := ends{local: netip.MustParseAddrPort("192.0.2.2:80"), remote: netip.MustParseAddrPort("192.0.2.1:20000")}
	f := t.claim(e)
	f.blank, f.synced, f.irs, f.iss = false, true, 999, 4999
	f.rcvNxt, f.next, f.rcvEdge, f.sndNxt, f.sndUna = 1000, 1000, 2000, 5000, 5000
	f.agreed = header.TCPSynOptions{TS: true, WS: -1}
	f.recent = 70
	return t, f
}

// FuzzInbound gives any packet to the tap: what is shown of it lies within the window, and has the right checksum.
func FuzzInbound(f *testing.F) {
	valid := made{seq: 1100, ack: 5000, flags: header.TCPFlagAck, time: 80, data: bytes.Repeat([]byte("x"), 40)}
	for _, m := range []made{valid, {seq: 1100, ack: 5000, flags: header.TCPFlagAck | header.TCPFlagFin, time: 80},
		{flags: header.TCPFlagSyn, options: []byte{2, 4, 5, 0xb4, 3, 3, 255, 8}}} {
		f.Add(m.packet(1))
		f.Add(m.packet(1)[:39])
	}
	ip6 := make(header.IPv6, 60)
	ip6.Encode(&header.IPv6Fields{PayloadLength: 20, TransportProtocol: header.TCPProtocolNumber, HopLimit: 1})
	f.Add([]byte(ip6))
	if t, fl := fuzzFlow(); true {
		shown := 0
		fl.showTo(func(_ uint64, content []byte) { shown += len(content) })
		if v := t.inbound(valid.packet(1)); v != ahead || shown != 40 {
			f.Fatalf("the correct segment is %v, and %d bytes of it were shown", v, shown)
		}
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		t0, fl := fuzzFlow()
		fl.showTo(func(at uint64, content []byte) {
			if at == 0 || at+uint64(len(content)) > 1000 {
				t.Errorf("%d bytes at %d were shown", len(content), at)
			}
			s, ok := parseSegment(packet)
			if !ok || !s.intact() || !bytes.Contains(packet, content) ||
				s.has(header.TCPFlagSyn|header.TCPFlagRst|header.TCPFlagUrg) {
				t.Errorf("%x was shown", packet)
			}
		})
		before := bytes.Clone(packet)
		t0.inbound(packet)
		t0.outbound(packet)
		t0.inbound(packet)
		if !bytes.Equal(packet, before) {
			t.Error("the packet was changed")
		}
	})
}
