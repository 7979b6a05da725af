package capture_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// quote makes an ICMP packet to the sender of another one, with its first bytes.
func quote(p []byte, head int, icmp [4]byte, mtu uint32, n int) []byte {
	b := slices.Clone(p[:head])
	if head == 40 {
		b[6] = 58
		binary.BigEndian.PutUint16(b[4:], uint16(8+n))
		copy(b[24:], p[8:24])
	} else {
		b[9] = 1
		binary.BigEndian.PutUint16(b[2:], uint16(head+8+n))
		copy(b[16:], p[12:16])
	}
	return append(binary.BigEndian.AppendUint32(append(b, icmp[:]...), mtu), p[:n]...)
}

// TestPath has a router say that a segment is too large, and others say something else.
func TestPath(t *testing.T) {
	v4 := [2]netip.AddrPort{client(40000), server}
	v6 := [2]netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:40000"),
		netip.MustParseAddrPort("[2001:db8::2]:4791")}
	tooBig4, tooBig6 := [4]byte{3, 4}, [4]byte{2}
	const ended = 1000 // bytes that the first segment has; it is acknowledged
	for _, c := range []struct {
		what   string
		ends   [2]netip.AddrPort
		icmp   [4]byte // type and code
		mtu    uint32
		bytes  int // that are quoted
		change func(quoted []byte, whole []byte)
		want   int
		said   bool
	}{
		{what: "IPv4", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 28, want: 1400, said: true},
		{what: "IPv6", ends: v6, icmp: tooBig6, mtu: 1400, bytes: 48, want: 1400, said: true},
		{what: "a router that does not say", ends: v4, icmp: tooBig4, bytes: 28, said: true},
		{what: "a size that no packet has", ends: v6, icmp: tooBig6, mtu: 1 << 31, bytes: 60,
			want: 1 << 16, said: true},
		{what: "another reason", ends: v4, icmp: [4]byte{3, 1}, mtu: 1400, bytes: 28},
		{what: "IPv6's type over IPv4", ends: v4, icmp: tooBig6, mtu: 1400, bytes: 28},
		{what: "IPv4's type over IPv6", ends: v6, icmp: tooBig4, mtu: 1400, bytes: 48},
		{what: "no whole sequence number", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 27},
		{what: "no whole header", ends: v6, icmp: tooBig6, mtu: 1400, bytes: 39},
		{what: "nothing", ends: v4, icmp: tooBig4, mtu: 1400},
		{what: "another connection", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 28,
			change: func(q, _ []byte) { q[21]++ }},
		{what: "bytes that are acknowledged", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 28,
			change: func(q, _ []byte) { binary.BigEndian.PutUint32(q[24:], binary.BigEndian.Uint32(q[24:])-1) }},
		{what: "bytes that were not sent", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 28,
			change: func(q, _ []byte) { binary.BigEndian.PutUint32(q[24:], binary.BigEndian.Uint32(q[24:])+ended) }},
		{what: "to another host", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 28,
			change: func(_, whole []byte) { whole[19]++ }},
		{what: "a fragment", ends: v4, icmp: tooBig4, mtu: 1400, bytes: 28,
			change: func(_, whole []byte) { whole[6] = 0x20 }},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBook(t)
			tracker := capture.NewTracker(capture.Config{}, b)
			last := twoSegments(t, tracker, c.ends, ended)
			head := 20
			if c.ends == v6 {
				head = 40
			}
			icmp := quote(last, head, c.icmp, c.mtu, c.bytes)
			if c.change != nil {
				c.change(icmp[head+8:], icmp)
			}
			tracker.Packet(&capture.Packet{Number: 9, Time: epoch.Add(time.Second), Link: capture.LinkRaw, Data: icmp})
			tracker.Flush()
			conn := b.only().c
			want := capture.PathMTU{}
			if c.said {
				want = capture.PathMTU{MTU: c.want, Packet: capture.Stamp{Number: 9, Time: epoch.Add(time.Second)}}
			}
			if got := conn.Halves[forth].Path; got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if got := conn.Halves[back].Path; got != (capture.PathMTU{}) {
				t.Errorf("the other direction: %+v", got)
			}
		})
	}
}

// twoSegments tracks a connection on which the bytes of a second segment are under way, and
// returns its packet.
func twoSegments(t *testing.T, to *capture.Tracker, ends [2]netip.AddrPort, n int) (last []byte) {
	t.Helper()
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{MSS: 5000})
	testrig.Must(t, err)
	f, err := w.Open(ends[forth], ends[back], epoch)
	testrig.Must(t, err)
	testrig.Must(t, f.Send(forth, epoch, make([]byte, n)))
	testrig.Must(t, f.Send(back, epoch, []byte("x"))) // with an acknowledgment
	testrig.Must(t, f.Send(forth, epoch, make([]byte, n)))
	testrig.Must(t, w.Flush())
	in, err := capture.Open(&file)
	testrig.Must(t, err)
	for p, err := in.Next(); err == nil; p, err = in.Next() {
		to.Packet(p)
		last = slices.Clone(p.Data)
	}
	return last
}
