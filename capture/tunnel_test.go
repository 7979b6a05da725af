package capture_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Addresses of the ends of tunnels, and packets in them.
const (
	outer4  = ` c0a80001 c0a80002 `
	outer6  = ` fd000000000000000000000000000001 fd000000000000000000000000000002 `
	inner4  = ip4 + tcpHello
	inner6  = ip6 + tcpHello
	framed4 = macs + `0800` + inner4
)

// over4 puts a header of IPv4 in front of a packet.
func over4(t testing.TB, proto byte, payload string) string {
	n := 20 + len(testrig.Bytes(t, payload))
	return fmt.Sprintf(" 4500 %04x 0000 4000 40 %02x 0000 %s %s", n, proto, outer4, payload)
}

// over6 does the same with IPv6.
func over6(t testing.TB, proto byte, payload string) string {
	return fmt.Sprintf(" 60000000 %04x %02x 40 %s %s", len(testrig.Bytes(t, payload)), proto, outer6, payload)
}

// inUDP makes a datagram to a port.
func inUDP(t testing.TB, port uint16, payload string) string {
	return over4(t, 17, fmt.Sprintf("c000 %04x %04x 0000 %s", port, 8+len(testrig.Bytes(t, payload)), payload))
}

// tunnels have a packet of TCP in them, which is read.
func tunnels(t testing.TB) []layout {
	raw := func(name, hex, want string) layout { return layout{name, capture.LinkRaw, hex, want} }
	frame := func(name, rest, want string) layout { return layout{name, capture.LinkEthernet, macs + rest, want} }
	return []layout{
		raw("IPv4 in IPv4", over4(t, 4, inner4), hello4),
		raw("IPv6 in IPv4", over4(t, 41, inner6), hello6),
		raw("IPv4 in IPv6", over6(t, 4, inner4), hello4),
		raw("IPv6 in IPv6", over6(t, 41, inner6), hello6),
		raw("IPv4 in IPv4, twice", over4(t, 4, over4(t, 4, inner4)), hello4),
		raw("authentication in IPv4", over4(t, 51, `06 04 0000 00000001 00000001 000000000000000000000000`+tcpHello),
			` 192.168.0.1:40000 -> 192.168.0.2:4791 "hello"`),
		raw("GRE", over4(t, 47, `0000 0800`+inner4), hello4),
		raw("GRE with checksum, key and sequence", over4(t, 47, `b000 86dd 00000000 00000007 00000001`+inner6), hello6),
		raw("gretap", over4(t, 47, `0000 6558`+framed4), hello4),
		raw("GRE over IPv6", over6(t, 47, `2000 6558 00000007`+framed4), hello4),
		raw("ERSPAN, first version", over4(t, 47, `0000 88be`+framed4), hello4),
		raw("ERSPAN, second version", over4(t, 47, `1000 88be 00000001 1001 0001 00000000`+framed4), hello4),
		raw("ERSPAN, third version", over4(t, 47, `1000 22eb 00000001 2001 0001 00000000 00000000`+framed4), hello4),
		raw("ERSPAN, third version, with more", over4(t, 47,
			`1000 22eb 00000001 2001 0001 00000000 00000001 0000000000000000`+framed4), hello4),
		raw("EtherIP", over4(t, 97, `3000`+framed4), hello4),
		raw("Ethernet in IPv6", over6(t, 143, framed4), hello4),
		raw("MPLS in IP", over4(t, 137, `00010140`+inner4), hello4),
		raw("VXLAN", inUDP(t, 4789, `08000000 00002a00`+framed4), hello4),
		raw("VXLAN with tags inside", inUDP(t, 4789, `08000000 00002a00`+macs+`8100 0005 0800`+inner4), hello4),
		raw("VXLAN with a group policy", inUDP(t, 4789, `88000007 00002a00`+framed4), hello4),
		raw("VXLAN at Linux's port", inUDP(t, 8472, `08000000 00002a00`+framed4), hello4),
		raw("VXLAN-GPE", inUDP(t, 4790, `0c000001 00002a00`+inner4), hello4),
		raw("VXLAN-GPE with Ethernet", inUDP(t, 4790, `0c000003 00002a00`+framed4), hello4),
		raw("GENEVE", inUDP(t, 6081, `0000 6558 00002a00`+framed4), hello4),
		raw("GENEVE with options, and IPv6", inUDP(t, 6081, `0200 86dd 00002a00 0102800100000000`+inner6), hello6),
		frame("QinQ", `88a8 0064 8100 0005 0800`+inner4, hello4),
		frame("MPLS", `8847 00064040 00065140`+inner4, hello4),
		frame("MPLS with IPv6", `8848 00065140`+inner6, hello6),
		frame("a pseudowire", `8847 00065140 00000000`+framed4, hello4),
		frame("a pseudowire without control word",
			`8847 00065140`+strings.Replace(framed4, "020000000002", "a20000000002", 1), hello4),
		frame("MPLS with a label like that of 802.2", `8847 aaaa0300 00000000`+framed4, hello4),
		frame("PPPoE", `8864 1100 0007 002f 0021`+inner4, hello4),
		frame("PPPoE with IPv6", `8864 1100 0007 0043 0057`+inner6, hello6),
		frame("802.2", `0035 aaaa03 000000 0800`+inner4, hello4),
		frame("802.2 of something else", `0035 424203 000000 0800`+inner4, "not IP"),
		frame("backbone bridges", `88e7 00000007`+framed4, hello4),
		frame("tags, and VXLAN", `8100 0005 0800`+inUDP(t, 4789, `08000000 00002a00`+framed4), hello4),

		raw("ESP", over4(t, 50, `00000001 00000001 c6c6c6c6c6c6c6c6`), "encrypted"),
		raw("ESP in UDP", inUDP(t, 4500, `00000001 00000001 c6c6c6c6c6c6c6c6`), "encrypted"),
		raw("an exchange of keys in UDP", inUDP(t, 4500, `00000000 00000001 c6c6c6c6c6c6c6c6`), "not TCP"),
		raw("WireGuard", inUDP(t, 51820, `04000000 00000001 c6c6c6c6c6c6c6c6`), "encrypted"),
		frame("MACsec", `88e5 2c00 00000001 c6c6c6c6c6c6c6c6`, "encrypted"),
		frame("encrypted PPP", `8864 1100 0007 0006 0053 c6c6c6c6`, "encrypted"),
		raw("IPComp", over4(t, 108, `06000001 c6c6c6c6`), "tunnel of an unknown kind"),
		raw("L2TP", inUDP(t, 1701, `0002 0001 0001 ff03 0021`+inner4), "tunnel of an unknown kind"),
		raw("GTP", inUDP(t, 2152, `30ff 002d 00000001`+inner4), "tunnel of an unknown kind"),
		raw("PPTP", over4(t, 47, `3001 880b 0008 0001 00000001 ff03 0021 4500`), "tunnel of an unknown kind"),
		raw("VXLAN-GPE with service headers", inUDP(t, 4790, `0c000004 00002a00`+inner4), "tunnel of an unknown kind"),
		frame("service headers", `894f 0fc6 0103`+inner4, "tunnel of an unknown kind"),
		raw("IPv4 within IPv4 within and so on", over4(t, 4,
			strings.Repeat(` 4500 00ff 0000 4000 40 04 0000`+outer4, 9)), "tunnel of an unknown kind"),

		raw("ARP in VXLAN", inUDP(t, 4789, `08000000 00002a00`+macs+`0806 0001`), "not IP"),
		raw("UDP in VXLAN", inUDP(t, 4789, `08000000 00002a00`+macs+`0800`+
			inUDP(t, 53, `0001020304050607`)), "not TCP"),
		raw("something else at VXLAN's port", inUDP(t, 4789, `48000000 00002a00`+framed4), "not TCP"),
		raw("something else at GENEVE's port", inUDP(t, 6081, `c000 6558 00002a00`+framed4), "not TCP"),
		raw("GRE, cut", over4(t, 47, `2000`), "headers cut off"),
		raw("GRE, cut in its key", over4(t, 47, `2000 0800 0000`), "headers cut off"),
		raw("VXLAN, cut in the Ethernet", inUDP(t, 4789, `08000000 00002a00 0200000000`), "headers cut off"),
		frame("MPLS without an end", `8847 00064040 00064040`, "headers cut off"),
		frame("PPPoE, cut", `8864 1100 0007`, "headers cut off"),
		frame("tags, cut", `8100 0005 8100`, "headers cut off"),
		raw("the first fragment of VXLAN", ` 4500 0064 0000 2000 40 11 0000`+outer4+
			`c000 12b5 0064 0000 08000000 00002a00`+framed4, "IP fragment"),
		raw("the first fragment of UDP", ` 4500 0064 0000 2000 40 11 0000`+outer4+
			`c000 0035 0064 0000 0102030405060708`, "not TCP"),
		raw("a later fragment of UDP, which looks like VXLAN",
			` 4500 0064 0000 0003 40 11 0000`+outer4+`c000 12b5 0064 0000 08000000 00002a00`+framed4, "not TCP"),
		raw("a fragment of GRE", ` 4500 0064 0000 0003 40 2f 0000`+outer4+`0102030405060708`, "IP fragment"),
		raw("a PPP session's own packets", over4(t, 47, `0000 8864 1100 0007 0006 c021 0101`), "not IP"),
	}
}

// TestTunnels reads tunnels, or says why it does not.
func TestTunnels(t *testing.T) {
	for _, c := range tunnels(t) {
		t.Run(c.name, c.run)
	}
}

// TestTunnelLengths has padding behind a packet in a tunnel, and a tunnel of which the end is cut: the lengths are
// those of the packet.
func TestTunnelLengths(t *testing.T) {
	layout{"padding", capture.LinkRaw, inUDP(t, 4789,
		`08000000 00002a00`+framed4+` 00000000000000000000`), hello4}.run(t)
	// a large segment has no length
	for _, inner := range []string{framed4, strings.Replace(framed4, "4500 002d", "4500 0000", 1)} {
		data := testrig.Bytes(t, inUDP(t, 4789, `08000000 00002a00`+inner))
		s := &lastSegment{}
		cut := &capture.Packet{Number: 1, Time: epoch, Link: capture.LinkRaw,
			Data: data[:len(data)-3], OrigLen: len(data)}
		capture.NewTracker(capture.Config{}, s).Packet(cut)
		if want := ` 10.0.0.1:40000 -> 10.0.0.2:4791 "he" of 5`; s.got != want {
			t.Errorf("got %s, want %s", s.got, want)
		}
	}
}
