package capture_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Parts of packets. The segment is "hello" from port 40000 to 4791.
const (
	tcpHello = `
		9c40 12b7           # ports 40000 and 4791
		00000001 00000002   # sequence number, acknowledgment
		50 18 ffff          # 20 bytes, PSH ACK, window
		0000 0000           # checksum, urgent pointer
		68656c6c6f          # hello
`
	addr4  = ` 0a000001 0a000002 `
	addr6  = ` 20010db8000000000000000000000001 20010db8000000000000000000000002 `
	ip4    = ` 4500 002d 0000 4000 40 06 0000 ` + addr4 // 45 bytes
	ip6    = ` 60000000 0019 06 40 ` + addr6
	macs   = ` 020000000002 020000000001 `
	hello4 = ` 10.0.0.1:40000 -> 10.0.0.2:4791 "hello"`
	hello6 = ` [2001:db8::1]:40000 -> [2001:db8::2]:4791 "hello"`
)

// TestLink has the headers that stand in front of IP.
func TestLink(t *testing.T) {
	for _, c := range []layout{
		{"Ethernet, padded", capture.LinkEthernet, macs + `0800` + ip4 + tcpHello + `00000000`, hello4},
		{"Ethernet, IPv6", capture.LinkEthernet, macs + `86dd` + ip6 + tcpHello, hello6},
		{"one VLAN tag", capture.LinkEthernet, macs + `8100 0064 0800` + ip4 + tcpHello, hello4},
		{"QinQ", capture.LinkEthernet, macs + `88a8 0064 8100 2065 86dd` + ip6 + tcpHello, hello6},
		{"old QinQ", capture.LinkEthernet, macs + `9100 0064 8100 2065 0800` + ip4 + tcpHello, hello4},
		{"loopback of a little endian", capture.LinkNull, `02000000` + ip4 + tcpHello, hello4},
		{"loopback of a big endian", capture.LinkNull, `00000002` + ip4 + tcpHello, hello4},
		{"loopback of FreeBSD", capture.LinkNull, `1c000000` + ip6 + tcpHello, hello6},
		{"loopback of Darwin", capture.LinkNull, `1e000000` + ip6 + tcpHello, hello6},
		{"loopback of OpenBSD", capture.LinkLoop, `00000018` + ip6 + tcpHello, hello6},
		{"raw IP", capture.LinkRaw, ip4 + tcpHello, hello4},
		{"raw IP, another number", capture.LinkRawBSD, ip6 + tcpHello, hello6},
		{"raw IP, yet another", capture.LinkRawOpen, ip6 + tcpHello, hello6},
		{"raw IPv4", capture.LinkIPv4, ip4 + tcpHello, hello4},
		{"raw IPv6", capture.LinkIPv6, ip6 + tcpHello, hello6},
		// type of packet, ARPHRD, length of address, address, protocol
		{"cooked", capture.LinkSLL, `0004 0001 0006 0200000000010000 0800` + ip4 + tcpHello, hello4},
		{"cooked, tagged", capture.LinkSLL, `0000 0001 0006 0200000000010000 8100 0064 86dd` + ip6 + tcpHello, hello6},
		// protocol, reserved, interface, ARPHRD, type of packet, length of address, address
		{"cooked 2", capture.LinkSLL2, `86dd 0000 00000003 0304 00 06 0000000000000000` + ip6 + tcpHello, hello6},

		{"ARP", capture.LinkEthernet, macs + `0806 0001`, "not IP"},
		{"another family", capture.LinkNull, `07000000` + ip4 + tcpHello, "not IP"},
		{"Wi-Fi", 105, ip4 + tcpHello, "unknown link type"},
		{"nothing", capture.LinkEthernet, ``, "headers cut off"},
		{"half a tag", capture.LinkEthernet, macs + `8100 00`, "headers cut off"},
		{"half a family", capture.LinkLoop, `0000`, "headers cut off"},
	} {
		t.Run(c.name, c.run)
	}
}

// TestIPv4 has headers of IPv4 and TCP.
func TestIPv4(t *testing.T) {
	for _, c := range []layout{
		{"options", capture.LinkRaw, `4700 0035 0000 4000 40 06 0000` + addr4 + `0101010101010100` + tcpHello, hello4},
		{"total length of a large segment", capture.LinkRaw,
			`4500 0000 0000 4000 40 06 0000` + addr4 + tcpHello, hello4},
		{"cut off and not said so", capture.LinkRaw,
			`4500 00ff 0000 4000 40 06 0000` + addr4 + tcpHello, hello4 + " of 215"},
		{"TCP options", capture.LinkRaw, `4500 0035 0000 4000 40 06 0000` + addr4 + `
			9c40 12b7 00000001 00000002 80 18 ffff 0000 0000
			0101 080a 00000001 00000002   # timestamps
			21`, ` 10.0.0.1:40000 -> 10.0.0.2:4791 "!"`},

		{"nothing", capture.LinkRaw, ``, "headers cut off"},
		{"version 5", capture.LinkRaw, `55`, "malformed header"},
		{"cut", capture.LinkRaw, `4500 002d 0000 4000 40 06`, "headers cut off"},
		{"header of 16", capture.LinkRaw, `4400 002d 0000 4000 40 06 0000` + addr4 + tcpHello, "malformed header"},
		{"total length of 19", capture.LinkRaw, `4500 0013 0000 4000 40 06 0000` +
			addr4 + tcpHello, "malformed header"},
		{"total length within TCP", capture.LinkRaw,
			`4500 0027 0000 4000 40 06 0000` + addr4 + tcpHello, "malformed header"},
		{"options cut", capture.LinkRaw, `4f00 0055 0000 4000 40 06 0000` + addr4 + `01`, "headers cut off"},
		{"UDP", capture.LinkRaw, `4500 002d 0000 4000 40 11 0000` + addr4 + tcpHello, "not TCP"},
		{"first fragment", capture.LinkRaw, `4500 002d 0000 2000 40 06 0000` + addr4 + tcpHello, "IP fragment"},
		{"last fragment", capture.LinkRaw, `4500 002d 0000 0003 40 06 0000` + addr4 + tcpHello, "IP fragment"},
		{"fragment of UDP", capture.LinkRaw, `4500 002d 0000 0003 40 11 0000` + addr4 + tcpHello, "not TCP"},
		{"TCP cut", capture.LinkRaw, ip4 + `9c40 12b7`, "headers cut off"},
		{"TCP header of 16", capture.LinkRaw, ip4 +
			`9c40 12b7 00000001 00000002 40 18 ffff 0000 0000 68656c6c6f`, "malformed header"},
		{"TCP header of 60", capture.LinkRaw, ip4 +
			`9c40 12b7 00000001 00000002 f0 18 ffff 0000 0000 68656c6c6f`, "malformed header"},
	} {
		t.Run(c.name, c.run)
	}
}

// TestIPv6 has extension headers.
func TestIPv6(t *testing.T) {
	head := func(length, next string) string { return ` 60000000 ` + length + next + ` 40 ` + addr6 }
	for _, c := range []layout{
		{"hop-by-hop and destination options", capture.LinkRaw, head(`0031`, `00`) + `
			3c 00 0502 0000 0100                     # router alert
			06 01 0104 00000000 0104 00000000 0000   # 16 bytes of padding` + tcpHello, hello6},
		{"routing", capture.LinkRaw, head(`0021`, `2b`) + `06 00 00 00 00000000` + tcpHello, hello6},
		{"authentication", capture.LinkRaw, head(`0031`, `33`) + `
			06 04 0000 00000001 00000001 000000000000000000000000` + tcpHello, hello6},
		{"a fragment that is all", capture.LinkRaw, head(`0021`, `2c`) + `06 00 0000 00000001` + tcpHello, hello6},
		{"a large segment", capture.LinkRaw, head(`0000`, `06`) + tcpHello, hello6},
		{"a jumbogram", capture.LinkRaw, head(`0000`, `00`) + `06 00 c204 00000021` + tcpHello, hello6},

		{"first fragment", capture.LinkRaw, head(`0021`, `2c`) + `06 00 0001 00000001` + tcpHello, "IP fragment"},
		{"later fragment", capture.LinkRaw, head(`0021`, `2c`) + `06 00 0568 00000001` + tcpHello, "IP fragment"},
		{"fragment of UDP", capture.LinkRaw, head(`0021`, `2c`) + `11 00 0568 00000001` + tcpHello, "not TCP"},
		{"cut", capture.LinkRaw, `60000000 0019 06`, "headers cut off"},
		{"extension cut", capture.LinkRaw, head(`0021`, `00`) + `06 00 05`, "headers cut off"},
		{"extension beyond the end", capture.LinkRaw,
			head(`0021`, `00`) + `06 ff 0502 00000100` + tcpHello, "headers cut off"},
		{"ESP", capture.LinkRaw, head(`0019`, `32`) + tcpHello, "encrypted"},
		{"no next header", capture.LinkRaw, head(`0000`, `3b`), "not TCP"},
	} {
		t.Run(c.name, c.run)
	}
}

// A layout is a packet and what becomes of it: a segment, with its length if some
// of it was cut off, or the reason to skip it.
type layout struct {
	name string
	link capture.LinkType
	hex  string
	want string
}

func (l layout) run(t *testing.T) {
	data := testrig.Bytes(t, l.hex)
	s := &lastSegment{}
	capture.NewTracker(capture.Config{}, s).Packet(&capture.Packet{Number: 1, Time: epoch, Link: l.link,
		Data: data, OrigLen: len(data)})
	if s.got != l.want {
		t.Errorf("got %s, want %s", s.got, l.want)
	}
}

// A lastSegment is a sink that describes the last packet.
type lastSegment struct {
	idle
	got string
}

func (l *lastSegment) Segment(c *capture.Connection, s *capture.Segment) {
	l.got = fmt.Sprintf(" %v %q", c, s.Data)
	if len(s.Data) != s.Length {
		l.got += fmt.Sprintf(" of %d", s.Length)
	}
}

func (l *lastSegment) Skipped(_ *capture.Packet, why capture.Skip) { l.got = why.String() }
