package decode_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// talked is a tape of a connection with a startup and a Write, in packets that are wrapped.
func talked(link capture.LinkType, wrap func(ip []byte) []byte) *tape {
	p := newTape(link)
	p.wrap = wrap
	p.open()
	p.data(fw, []byte(request1))
	p.data(bw, []byte(reply1))
	p.packet(fw, finAck, nil)
	p.packet(bw, finAck, nil)
	return p
}

// inVXLAN puts a packet into a tunnel.
func inVXLAN(ip []byte) []byte {
	b := []byte{8, 0, 0, 0, 0, 0, 42, 0}
	b = append(append(append(b, make([]byte, 12)...), 8, 0), ip...)
	udp := binary.BigEndian.AppendUint16([]byte{0xc0, 0, 0x12, 0xb5}, uint16(8+len(b)))
	return ipv4(fw, 17, append(append(udp, 0, 0), b...))
}

// TestUnread says why packets in which iWARP may be were not read, or reads them.
func TestUnread(t *testing.T) {
	const unnoticed = ", so that iWARP may have gone unnoticed"
	for _, c := range []struct {
		name  string
		tape  *tape
		iwarp uint64
		said  []string
		json  string
	}{
		{"VXLAN", talked(capture.LinkRaw, inVXLAN), 1, nil, `"skipped":0,"findings"`},
		{"ESP", talked(capture.LinkRaw, func(ip []byte) []byte { return ipv4(fw, 50, ip) }), 0,
			[]string{"not read: 7 packets (encrypted)" + unnoticed + "; capture where the packets leave the tunnel"},
			`"skipped":7,"unread":[{"why":"encrypted","packets":7}],`},
		{"L2TP", talked(capture.LinkRaw, func(ip []byte) []byte { return ipv4(fw, 115, ip) }), 0,
			[]string{"not read: 7 packets (tunnel of an unknown kind)" + unnoticed +
				"; capture where the packets leave the tunnel"}, ""},
		{"a link layer", talked(127, func(ip []byte) []byte { return ip }), 0,
			[]string{"not read: 7 packets (link type 127)" + unnoticed +
				"; capture an Ethernet interface, or convert the capture"}, ""},
		{"fragments", talked(capture.LinkRaw, func(ip []byte) []byte {
			if len(ip) > 40 {
				ip[6] |= 0x20
			}
			return ip
		}), 0, []string{"not read: 2 packets (IP fragment)" + unnoticed}, ""},
		{"ARP", talked(capture.LinkEthernet, func(ip []byte) []byte { return append(make([]byte, 12), 8, 6, 0, 1) }), 0,
			nil, `"skipped":7,"findings"`},
	} {
		var out, objects bytes.Buffer
		text, object := decode.NewText(&out, decode.TextConfig{}), decode.NewJSON(&objects, decode.JSONConfig{})
		totals, err := decode.Run(bytes.NewReader(c.tape.file.Bytes()), decode.Config{}, text)
		testrig.Must(t, err)
		text.Totals(totals)
		object.Totals(totals)
		testrig.Must(t, text.Flush())
		testrig.Must(t, object.Flush())
		_, said, _ := strings.Cut(out.String(), totals.String()+"\n")
		if totals.IWARP != c.iwarp || strings.Count(said, "\n") != len(c.said) ||
			!strings.HasPrefix(said, strings.Join(c.said, "\n")) && c.said != nil {
			t.Errorf("%s: %v, and then\n%s", c.name, &totals, said)
		}
		if !strings.Contains(objects.String(), c.json) {
			t.Errorf("%s: %s", c.name, &objects)
		}
	}
}
