package decode_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// A bystander captures a connection, and has packets of its own to add.
type bystander struct {
	on           func(*capture.Packet)
	number       uint64
	before, last []byte // packets with bytes of the initiator's
}

// pass passes a packet on.
func (y *bystander) pass(p capture.Packet) {
	y.number++
	p.Number = y.number
	y.on(&p)
}

// headOf is the length of the IP header of a packet.
func headOf(ip []byte) int {
	if ip[0]>>4 == 6 {
		return 40
	}
	return 20
}

// tooBig has a router say that the last packet was too large.
func (y *bystander) tooBig(mtu uint16) {
	head := headOf(y.last)
	b := slices.Clone(y.last[:head])
	if head == 40 {
		b[6] = 58 // ICMPv6: RFC 4443
		binary.BigEndian.PutUint16(b[4:], 8+40+20)
		copy(b[24:40], y.last[8:24])
		b = append(b, 2, 0, 0, 0, 0, 0, byte(mtu>>8), byte(mtu))
	} else {
		b[9] = 1 // ICMP: RFC 792, RFC 1191
		binary.BigEndian.PutUint16(b[2:], 20+8+28)
		copy(b[16:20], y.last[12:16])
		b = append(b, 3, 4, 0, 0, 0, 0, byte(mtu>>8), byte(mtu))
	}
	y.pass(capture.Packet{Time: start, Link: capture.LinkRaw, Data: append(b, y.last[:head+20]...)})
}

// acknowledge has the responder acknowledge the first bytes of the last packet.
func (y *bystander) acknowledge(data ...int) {
	for _, n := range data {
		b := slices.Clone(y.last[:40])
		copy(b[12:16], y.last[16:20])
		copy(b[16:20], y.last[12:16])
		copy(b[20:22], y.last[22:24])
		copy(b[22:24], y.last[20:22])
		binary.BigEndian.PutUint16(b[2:], 40)
		copy(b[24:28], y.last[28:32])
		binary.BigEndian.PutUint32(b[28:], binary.BigEndian.Uint32(y.last[24:])+uint32(n))
		b[33] = byte(capture.ACK)
		y.pass(capture.Packet{Time: start, Link: capture.LinkRaw, Data: b})
	}
}

// again has the last packet sent once more from a byte on.
func (y *bystander) again(from int) {
	b := slices.Concat(y.last[:40], y.last[40+from:])
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint32(b[24:], binary.BigEndian.Uint32(y.last[24:])+uint32(from))
	y.pass(capture.Packet{Time: start, Link: capture.LinkRaw, Data: b})
}

// beforeAgain has the packet before the last one sent once more.
func (y *bystander) beforeAgain() {
	last := y.last
	y.last = y.before
	y.again(0)
	y.last = last
}

// withOptions adds options of TCP to a packet of IPv4 without bytes of the stream.
func withOptions(b, options []byte) []byte {
	if len(options) == 0 {
		return b
	}
	b = append(b, options...)
	b[20+12] += byte(len(options) / 4 << 4)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

// multiples returns n of them.
func multiples(of, n int) (list []int) {
	for i := range n {
		list = append(list, of*(i+1))
	}
	return list
}

// A sent packet is of FPDUs, and something happens after it.
type sent struct {
	d     capture.Dir
	fpdus []int // bytes of each
	then  func(y *bystander)
	whole bool // they are one message, else each is one
	late  bool // the next packet comes first, and what happens after that
}

// times is n FPDUs.
func times(n, size int) []int { return slices.Repeat([]int{size}, n) }

// between decodes a connection of which both SYNs say the same MSS.
func between(t testing.TB, mss uint16, a, b netip.AddrPort, packets []sent) *decode.Connection {
	t.Helper()
	return betweenWith(t, mss, nil, a, b, packets)
}

// betweenWith is between with SYNs of IPv4 that have options more.
func betweenWith(t testing.TB, mss uint16, options []byte, a, b netip.AddrPort, packets []sent) *decode.Connection {
	t.Helper()
	s := newScriptBetween(t, 60000, a, b)
	s.startup(false)
	for _, p := range packets {
		var data []byte
		for i, size := range p.fpdus {
			h := tagged(1)
			if p.whole {
				h.Last, h.TO = i == len(p.fpdus)-1, uint64(len(data)-20*i)
			}
			data = append(data, s.fpdu(p.d, h, make([]byte, size-20))...)
		}
		s.send(p.d, data)
	}
	var y bystander
	var held []capture.Packet
	r := passed(t, s.close(), func(p *capture.Packet, on func(*capture.Packet)) {
		y.on = on
		copied := *p
		copied.Data = slices.Clone(p.Data)
		head := headOf(p.Data)
		if copied.Data[head+13]&byte(capture.SYN) != 0 {
			binary.BigEndian.PutUint16(copied.Data[head+22:], mss)
			copied.Data = withOptions(copied.Data, options)
		}
		if len(p.Data) < head+20+300 { // of the startup, or an acknowledgment
			y.pass(copied)
			return
		}
		this := packets[0]
		packets = packets[1:]
		if this.late {
			held = append(held, copied)
			return
		}
		y.pass(copied)
		y.before, y.last = y.last, copied.Data
		if this.then != nil {
			this.then(&y)
		}
		for _, p := range held {
			y.pass(p)
		}
		held = nil
	})
	if s := r.serious(); len(s) > 0 {
		t.Errorf("findings %q", r.texts)
	}
	return r.conns[0]
}

// wantPath decodes the packets of an initiator whose SYN says an MSS of 1000, and holds how they count against what is
// wanted, but for the MSS and the RTR indication. It returns what the summary says.
func wantPath(t *testing.T, packets []sent, want decode.Alignment) (said string) {
	t.Helper()
	conn := between(t, 1000, client, server, packets)
	want.MSS, want.Segments, want.Aligned = 1000, want.Segments+1, want.Aligned+1
	if got := conn.Halves[fw].Wire; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, row := range conn.Summary() {
		said += row[1] + "\n"
	}
	return said
}

// TestPathShrinks has packets that an interface cuts, on a path that comes to take less than the
// SYNs say: they count as what they are cut into then, or not at all where that is not known.
func TestPathShrinks(t *testing.T) {
	// number of the packet after the first large one, which comes after the handshake, the startup and an RTR
	// indication
	const second = 8
	tooBig := func(mtu uint16) func(y *bystander) { return func(y *bystander) { y.tooBig(mtu) } }
	acks := func(data ...int) func(y *bystander) { return func(y *bystander) { y.acknowledge(data...) } }
	less := func(first, last int) func(y *bystander) { // each time four bytes
		return func(y *bystander) {
			for i := first; i <= last; i++ {
				y.tooBig(uint16(1040 - 4*i))
				y.acknowledge(0)
			}
		}
	}
	old, shorter := times(4, 1000), times(10, 800)
	for _, c := range []struct {
		what    string
		packets []sent
		want    decode.Alignment // but for the MSS, and the RTR indication
	}{
		{"a router says so", []sent{{fpdus: old, then: tooBig(840)}, {fpdus: shorter}},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 14, Aligned: 14, Cut: 2}},
		{"what is sent does not follow", []sent{{fpdus: old, then: tooBig(840)}, {fpdus: old}},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 9, Aligned: 4, Cut: 2}},
		{"more than once", []sent{{fpdus: old, then: tooBig(940)},
			{fpdus: times(3, 900), then: tooBig(840)}, {fpdus: shorter}},
			decode.Alignment{MSSAtEnd: 800, Changed: second + 2, Segments: 17, Aligned: 17, Cut: 3}},
		{"a router says of more than there was", []sent{{fpdus: old, then: tooBig(1500)}, {fpdus: old}},
			decode.Alignment{MSSAtEnd: 1000, Segments: 8, Aligned: 8, Cut: 2}},
		{"a router says of just as much", []sent{{fpdus: old, then: tooBig(1040)}, {fpdus: old}},
			decode.Alignment{MSSAtEnd: 1000, Segments: 8, Aligned: 8, Cut: 2}},
		{"what comes late was cut before", []sent{{fpdus: old, late: true}, {fpdus: old, then: tooBig(840)}},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 9, Aligned: 4, Cut: 2}},
		{"what comes late was cut at what it was in between",
			[]sent{{fpdus: old, then: tooBig(940)}, {fpdus: old, late: true},
				{fpdus: times(3, 900), then: tooBig(840)}},
			decode.Alignment{MSSAtEnd: 800, Changed: second + 2, Segments: 4 + 5 + 3, Aligned: 4 + 3, Cut: 3}},
		{"so many times that not all are remembered",
			[]sent{{fpdus: old, then: less(1, 16)}, {fpdus: old, late: true},
				{fpdus: times(4, 1000-15*4), then: less(17, 17)}},
			decode.Alignment{MSSAtEnd: 1000 - 17*4, Changed: second + 33, Segments: 4 + 5 + 4, Aligned: 4 + 4, Cut: 3}},
		{"of which the first is", []sent{{fpdus: old, then: less(1, 1)}, {fpdus: old, late: true},
			{fpdus: times(4, 1000-4), then: less(2, 20)}},
			decode.Alignment{MSSAtEnd: 1000 - 20*4, Changed: second + 39, Segments: 4 + 5 + 4, Aligned: 4 + 4, Cut: 3}},
		{"acknowledgments contradict what is not whole yet",
			[]sent{{fpdus: old, late: true}, {fpdus: old, then: acks(900)}},
			decode.Alignment{Changed: second - 1, Unknown: 2}},
		{"a router does not say of how much", []sent{{fpdus: old, then: tooBig(0)},
			{fpdus: shorter}, {fpdus: []int{400}}},
			decode.Alignment{Changed: second, Segments: 5, Aligned: 5, Cut: 1, Unknown: 1}},
		{"nor, the next time, of less than the SYNs",
			[]sent{{fpdus: old, then: func(y *bystander) { y.tooBig(0); y.acknowledge(0); y.tooBig(1500) }},
				{fpdus: shorter}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 1}},
		{"of less than hosts go down to", []sent{{fpdus: old, then: tooBig(200)}, {fpdus: shorter}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 1}},
		{"of a packet that is acknowledged", []sent{{fpdus: old,
			then: func(y *bystander) { y.acknowledge(4000); y.tooBig(840) }}, {fpdus: old}},
			decode.Alignment{MSSAtEnd: 1000, Segments: 8, Aligned: 8, Cut: 2}},
		{"acknowledgments agree", []sent{{fpdus: old, then: acks(multiples(1000, 3)...)},
			{fpdus: old, then: acks(2000, 4000)}},
			decode.Alignment{MSSAtEnd: 1000, Segments: 8, Aligned: 8, Cut: 2}},
		{"acknowledgments show it", []sent{{fpdus: old},
			{fpdus: shorter, then: acks(multiples(800, 9)...)}, {fpdus: shorter}},
			decode.Alignment{MSSAtEnd: 800, Changed: second + 8, Segments: 14, Aligned: 14, Cut: 2, Unknown: 1}},
		{"and that it is as it was", []sent{{fpdus: old, then: acks(804)},
			{fpdus: shorter, then: acks(multiples(1000, 7)...)},
			{fpdus: times(9, 1000), then: acks(multiples(1000, 8)...)}, {fpdus: old}},
			decode.Alignment{MSSAtEnd: 1000, Changed: second + 11, Segments: 4, Aligned: 4, Cut: 1, Unknown: 3}},
		{"acknowledgments of every second segment",
			[]sent{{fpdus: old}, {fpdus: times(20, 800), then: acks(multiples(1600, 9)...)}, {fpdus: shorter}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 2}},
		{"and then one alone, after a router", []sent{{fpdus: old},
			{fpdus: times(20, 900), then: acks(multiples(1800, 9)...)}, {fpdus: shorter, then: tooBig(840)},
			{fpdus: times(10, 900), then: acks(900)}},
			decode.Alignment{Changed: second + 12, Segments: 4, Aligned: 4, Cut: 1, Unknown: 3}},
		{"of less than half", []sent{{fpdus: old},
			{fpdus: times(20, 400), then: acks(multiples(400, 19)...)}, {fpdus: shorter}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 2}},
		{"of what was sent again", []sent{{fpdus: old,
			then: func(y *bystander) { y.again(1400); y.acknowledge(1400, 2400) }}, {fpdus: old}},
			decode.Alignment{MSSAtEnd: 1000, Segments: 8, Aligned: 8, Cut: 2}},
		{"of one after what was sent again", []sent{{fpdus: old},
			{fpdus: shorter, then: func(y *bystander) { y.beforeAgain(); y.acknowledge(multiples(800, 9)...) }},
			{fpdus: shorter}},
			decode.Alignment{MSSAtEnd: 800, Changed: second + 9, Segments: 14, Aligned: 14, Cut: 2, Unknown: 1}},
		{"acknowledgments contradict what was before a router",
			[]sent{{fpdus: old, then: func(y *bystander) { y.tooBig(840); y.acknowledge(900) }}, {fpdus: shorter}},
			decode.Alignment{Changed: second - 1, Unknown: 2}},
		{"acknowledgments within a segment", []sent{{fpdus: []int{800}, then: acks(500)},
			{fpdus: []int{1000}, then: acks(500)}},
			decode.Alignment{MSSAtEnd: 1000, Segments: 2, Aligned: 2}},
		{"one acknowledgment, again and again", []sent{{fpdus: old},
			{fpdus: shorter, then: acks(slices.Repeat([]int{800}, 9)...)}, {fpdus: shorter}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 2}},
		{"one too few within packets, and one between them",
			[]sent{{fpdus: old}, {fpdus: shorter},
				{fpdus: shorter, then: acks(-7200, -6400, -5600, -4800, -4000, -3200, -2400, 0)}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 2}},
		{"of half", []sent{{fpdus: old}, {fpdus: times(20, 500), then: acks(multiples(500, 19)...)}, {fpdus: shorter}},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 2}},
		{"of one before what was sent again", []sent{{fpdus: old},
			{fpdus: old, then: func(y *bystander) { y.again(0); y.acknowledge(-3100) }}},
			decode.Alignment{Changed: second - 1, Segments: 4, Aligned: 4, Cut: 1, Unknown: 1}},
		{"acknowledgments contradict a router", []sent{{fpdus: old, then: tooBig(840)},
			{fpdus: times(10, 900), then: acks(multiples(900, 9)...)}, {fpdus: times(10, 900)}},
			decode.Alignment{MSSAtEnd: 900, Changed: second + 9, Segments: 14, Aligned: 14, Cut: 2, Unknown: 1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			said := wantPath(t, c.packets, c.want)
			if strings.Contains(said, "not judged") != (c.want.Unknown > 0) {
				t.Errorf("%d are not judged; it says %s", c.want.Unknown, said)
			}
			if strings.Contains(said, "at the end") != (c.want.MSSAtEnd > 0 && c.want.MSSAtEnd != 1000) {
				t.Errorf("an MSS of %d at the end; it says %s", c.want.MSSAtEnd, said)
			}
		})
	}
}

// TestPathOfPeer has a path that comes to take less one way: of the other way it is not known.
func TestPathOfPeer(t *testing.T) {
	large := []sent{{d: bw, fpdus: times(4, 1000)}, {fpdus: times(4, 1000), then: func(y *bystander) { y.tooBig(840) }},
		{d: bw, fpdus: times(4, 1000)}, {d: bw, fpdus: []int{800}}}
	got := between(t, 1000, client, server, large).Halves[bw].Wire
	if want := (decode.Alignment{MSS: 1000, Changed: 9, Segments: 5, Aligned: 5, Cut: 1, Unknown: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPathOfBoth has a router say the same of both ways: what is known of one stays so when it is told of the other.
func TestPathOfBoth(t *testing.T) {
	told := func(y *bystander) { y.tooBig(840) }
	halves := between(t, 1000, client, server, []sent{{fpdus: times(4, 1000), then: told},
		{d: bw, fpdus: times(4, 1000), then: told}}).Halves
	if halves[fw].Wire.MSSAtEnd != 800 || halves[bw].Wire.MSSAtEnd != 800 {
		t.Errorf("%+v and %+v, want an MSS of 800 at the end", halves[fw].Wire, halves[bw].Wire)
	}
}

// TestPathIPv6 has packets of IPv6, of which the paths all take 1280 bytes.
func TestPathIPv6(t *testing.T) {
	a, b := netip.MustParseAddrPort("[2001:db8::1]:40000"), netip.MustParseAddrPort("[2001:db8::2]:4791")
	for _, c := range []struct {
		mtu  uint16
		want int
	}{{1400, 1340}, {1300, 1240}, {600, 1220}} {
		got := between(t, 1340, a, b, []sent{{fpdus: times(4, 1340),
			then: func(y *bystander) { y.tooBig(c.mtu) }}}).Halves[fw].Wire
		if got.MSSAtEnd != c.want {
			t.Errorf("an MTU of %d: %+v, want %d", c.mtu, got, c.want)
		}
	}
}

// TestPathTimestamps has SYNs with timestamps, which every segment has then: of what a router says, and of the MSS,
// they take twelve bytes.
func TestPathTimestamps(t *testing.T) {
	stamps := []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0} // RFC 7323
	got := betweenWith(t, 1012, stamps, client, server,
		[]sent{{fpdus: times(4, 1000), then: func(y *bystander) { y.tooBig(852) }}}).Halves[fw].Wire
	if got.MSS != 1000 || got.MSSAtEnd != 800 {
		t.Errorf("%+v, want an MSS of 1000, and then of 800", got)
	}
}

// TestAnyPath has routers and a receiver that say anything: no packet counts twice, or is taken
// back twice.
func TestAnyPath(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		packets := make([]sent, rapid.IntRange(1, 20).Draw(rt, "packets"))
		sizes := rapid.SliceOfN(rapid.Map(rapid.IntRange(80, 500), func(n int) int { return 4 * n }), 1, 30)
		for i := range packets {
			packets[i] = sent{capture.Dir(rapid.IntRange(0, 1).Draw(rt, "direction")), sizes.Draw(rt, "FPDUs"),
				drawThen(rt), rapid.Bool().Draw(rt, "one message"), false}
		}
		n := uint64(len(packets))
		for d, h := range between(t, 1000, client, server, packets).Halves {
			if w := h.Wire; w.Aligned > w.Segments || w.Segments > 100*n || w.Cut+w.Unknown > n {
				rt.Errorf("%v: %+v of %d packets", capture.Dir(d), w, n)
			}
		}
	})
}

// drawThen draws what happens after a packet.
func drawThen(rt *rapid.T) func(y *bystander) {
	mtu := rapid.Uint16().Draw(rt, "MTU")
	acks := rapid.SliceOfN(rapid.IntRange(-100, 20000), 0, 5).Draw(rt, "acknowledged")
	switch rapid.IntRange(0, 4).Draw(rt, "then") {
	case 0:
		return func(y *bystander) { y.tooBig(mtu % 2000) }
	case 1:
		return func(y *bystander) { y.acknowledge(multiples(int(mtu%2000), 10)...) }
	case 2:
		return func(y *bystander) { y.acknowledge(acks...) }
	case 3:
		return func(y *bystander) { y.again(int(mtu % 320)); y.acknowledge(acks...) }
	}
	return nil
}
