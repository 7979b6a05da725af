package capture_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// written reads what is in a file.
func written(t *testing.T, w *capture.Writer, file *bytes.Buffer) (all []capture.Packet) {
	t.Helper()
	testrig.Must(t, w.Flush())
	r := openBytes(t, file.Bytes())
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		testrig.Must(t, err)
		kept := *p
		kept.Data = bytes.Clone(p.Data)
		all = append(all, kept)
	}
}

// onesOf is the sum of 16-bit words in ones' complement, which is 0xffff over bytes with their checksum: RFC 1071.
func onesOf(all ...[]byte) (sum uint32) {
	for _, b := range all {
		for i := 0; i < len(b); i += 2 {
			word := [2]byte{b[i]}
			copy(word[:], b[i:])
			sum += uint32(binary.BigEndian.Uint16(word[:]))
			sum = sum&0xffff + sum>>16
		}
	}
	return sum
}

// TestDatagram writes datagrams over IPv4 and IPv6, in frames of Ethernet and without, and checks each byte of the
// headers.
func TestDatagram(t *testing.T) {
	type ends struct{ from, to string }
	v4, v6 := ends{"10.0.0.1:258", "10.0.0.2:772"}, ends{"[2001:db8::1]:258", "[2001:db8::2]:772"}
	for _, c := range []struct {
		ends
		ethernet bool
		d        capture.Dir
		want     string // without checksums
	}{
		{v4, false, forth, "4500001f000040004011" + "0000" + "0a0000010a000002" + "01020304000b" + "0000" + "616263"},
		{v4, true, forth, "020000000002" + "020000000001" + "0800" + "4500001f000040004011" + "0000" +
			"0a0000010a000002" + "01020304000b" + "0000" + "616263"},
		{v6, true, back, "020000000001" + "020000000002" + "86dd" + "60000000000b1140" +
			"20010db8000000000000000000000001" + "20010db8000000000000000000000002" +
			"01020304000b" + "0000" + "616263"},
		{ends{"[::ffff:10.0.0.1]:258", v4.to}, false, forth,
			"4500001f000040004011" + "0000" + "0a0000010a000002" + "01020304000b" + "0000" + "616263"},
	} {
		var file bytes.Buffer
		w := newWriter(t, &file, capture.WriterConfig{Ethernet: c.ethernet})
		testrig.Must(t, w.Datagram(c.d, netip.MustParseAddrPort(c.from),
			netip.MustParseAddrPort(c.to), epoch, []byte("abc")))
		got := written(t, w, &file)[0]
		ip := got.Data[len(got.Data)-31:]
		if c.ends == v6 {
			ip = got.Data[len(got.Data)-51:]
		}
		udp := ip[len(ip)-11:]
		if c.ends == v6 {
			if sum := onesOf(ip[8:40], []byte{0, 17, 0, 11}, udp); sum != 0xffff {
				t.Errorf("%v: a sum of %#x", c, sum)
			}
		} else {
			if sum := onesOf(ip[12:20], []byte{0, 17, 0, 11}, udp); sum != 0xffff {
				t.Errorf("%v: a sum of %#x", c, sum)
			}
			if sum := onesOf(ip[:20]); sum != 0xffff {
				t.Errorf("%v: a sum of %#x in IP", c, sum)
			}
			copy(ip[10:], []byte{0, 0})
		}
		copy(udp[6:], []byte{0, 0})
		if text := hex.EncodeToString(got.Data); text != c.want || !got.Time.Equal(epoch) {
			t.Errorf("%v: got %s at %v, want %s", c, text, got.Time, c.want)
		}
	}
}

// TestDatagramSum: a checksum of zero would say that there is none (RFC 768).
func TestDatagramSum(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{})
	from, to := netip.MustParseAddrPort("0.0.0.0:0"), netip.MustParseAddrPort("0.0.0.0:0")
	testrig.Must(t, w.Datagram(forth, from, to, epoch, []byte{0xff, 0xff - 17 - 10 - 10}))
	if sum := written(t, w, &file)[0].Data[26:28]; sum[0] != 0xff || sum[1] != 0xff {
		t.Errorf("the checksum is % x", sum)
	}
}

// TestPackets: packets of IP are written as they are, and a time that is not given is the Writer's.
func TestPackets(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{Now: func() time.Time { return epoch.Add(time.Second) }})
	one, two := []byte{0x45, 1, 2}, []byte{0x60, 3}
	testrig.Must(t, w.Packet(forth, time.Time{}, one))
	testrig.Must(t, w.Packet(back, epoch, two))
	got := written(t, w, &file)
	if !bytes.Equal(got[0].Data, one) || !got[0].Time.Equal(epoch.Add(time.Second)) || got[0].Link != capture.LinkRaw {
		t.Errorf("%+v", got[0])
	}
	if !bytes.Equal(got[1].Data, two) || !got[1].Time.Equal(epoch) {
		t.Errorf("%+v", got[1])
	}
}

// TestNoPackets: what is no packet is refused, and the file stays as it is.
func TestNoPackets(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{})
	four, six := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("[2001:db8::1]:1")
	for what, err := range map[string]error{
		"nothing":      w.Packet(forth, epoch, nil),
		"version 5":    w.Packet(forth, epoch, []byte{0x50}),
		"two kinds":    w.Datagram(forth, four, six, epoch, nil),
		"no address":   w.Datagram(forth, netip.AddrPort{}, four, epoch, nil),
		"65,508 bytes": w.Datagram(forth, four, four, epoch, make([]byte, 65508)),
	} {
		if err == nil {
			t.Errorf("%s is written", what)
		}
	}
	testrig.Must(t, w.Datagram(forth, four, four, epoch, make([]byte, 65507)))
	if got := written(t, w, &file); len(got) != 1 || len(got[0].Data) != 65535 {
		t.Errorf("%d packets", len(got))
	}
}

// TestTapUDP: what a socket sends and receives is recorded, with the address that the peer knows where it is bound to
// all of them.
func TestTapUDP(t *testing.T) {
	for _, bound := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		var file bytes.Buffer
		w := newWriter(t, &file, capture.WriterConfig{})
		ours, peer := capture.TapUDP(socket(t, bound), w), socket(t, "127.0.0.1:0")
		port := ours.LocalAddr().(*net.UDPAddr).Port
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
		_, err := ours.WriteToUDPAddrPort([]byte("ask"), peer.LocalAddr().(*net.UDPAddr).AddrPort())
		testrig.Must(t, err)
		_, err = peer.WriteToUDPAddrPort([]byte("answer"), at)
		testrig.Must(t, err)
		buf := make([]byte, 100)
		n, from, err := ours.ReadFromUDPAddrPort(buf)
		testrig.Must(t, err)
		if string(buf[:n]) != "answer" || from.Port() != peer.LocalAddr().(*net.UDPAddr).AddrPort().Port() {
			t.Errorf("read %q from %v", buf[:n], from)
		}
		testrig.Must(t, ours.Close())
		if _, _, err := ours.ReadFromUDPAddrPort(buf); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
		got := written(t, w, &file)
		if len(got) != 2 {
			t.Fatalf("%s: %d packets", bound, len(got))
		}
		for i, text := range []string{"ask", "answer"} {
			ip := got[i].Data
			source, target := netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
			own := binary.BigEndian.Uint16(ip[20+2*i:])
			if string(ip[28:]) != text || source != at.Addr() || target != at.Addr() || own != at.Port() {
				t.Errorf("%s: % x", bound, ip)
			}
		}
	}
}

// TestTapConnected: so is what a connected socket sends and receives. One whose other end is not of UDP is refused.
func TestTapConnected(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{})
	peer := socket(t, "127.0.0.1:0")
	conn, err := net.Dial("udp4", peer.LocalAddr().String())
	testrig.Must(t, err)
	ours, err := capture.Tap(conn, w, forth)
	testrig.Must(t, err)
	write(t, ours, "ask")
	_, err = peer.WriteTo([]byte("answer"), conn.LocalAddr())
	testrig.Must(t, err)
	wantRead(t, ours, "answer")
	testrig.Must(t, ours.Close())
	got := written(t, w, &file)
	if len(got) != 2 || string(got[0].Data[28:]) != "ask" || string(got[1].Data[28:]) != "answer" {
		t.Fatalf("%d packets: %+v", len(got), got)
	}
	for i, p := range got {
		from, to := binary.BigEndian.Uint16(p.Data[20:]), binary.BigEndian.Uint16(p.Data[22:])
		if own := uint16(conn.LocalAddr().(*net.UDPAddr).Port); [2]uint16{from, to}[i] != own || from == to {
			t.Errorf("packet %d: from %d to %d, and our port is %d", i, from, to, own)
		}
	}
	if _, err := capture.Tap(socket(t, "127.0.0.1:0"), w, forth); err == nil {
		t.Error("a socket without a peer is recorded as one that has one")
	}
}

func socket(t *testing.T, bound string) *net.UDPConn {
	t.Helper()
	pc, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(bound)))
	testrig.Must(t, err)
	t.Cleanup(func() { _ = pc.Close() })
	return pc
}
