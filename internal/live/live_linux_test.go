package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

func TestMain(m *testing.M) { testrig.Main(m) }

// alone runs a test in a network namespace, where lo is up and nobody else sends.
func alone(t *testing.T, run func(ctx context.Context) error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a packet socket and a network namespace take root")
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = setUp("lo")
		}
		if err == nil {
			err = run(testrig.Within(t))
		}
		ended <- err
	}()
	switch err := <-ended; {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EAFNOSUPPORT):
		testrig.Lacks(t, "no packet socket in a network namespace: "+err.Error())
	case err != nil:
		t.Error(err)
	}
}

func setUp(device string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req)
}

// A book sums up the bytes of TCP connections.
type book struct {
	conns   []*capture.Connection
	largest int
	ends    int
}

func (b *book) Opened(c *capture.Connection) { b.conns = append(b.conns, c) }
func (b *book) Segment(_ *capture.Connection, s *capture.Segment) {
	b.largest = max(b.largest, s.Length)
}
func (b *book) Data(*capture.Connection, capture.Data)      {}
func (b *book) Gap(*capture.Connection, capture.Gap)        {}
func (b *book) Ended(*capture.Connection, capture.End)      { b.ends++ }
func (b *book) Forgotten(*capture.Connection)               {}
func (b *book) Skipped(_ *capture.Packet, why capture.Skip) {}

// TestEachOnce captures a TCP connection on lo, where each packet passes twice, checksums are left to a card that is not
// there, and segments are larger than an IP packet may be: all bytes are there, and none twice.
func TestEachOnce(t *testing.T) {
	for _, name := range []string{"lo", Any} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(ctx context.Context) error { return eachOnce(ctx, t, name) })
		})
	}
}

func eachOnce(ctx context.Context, t *testing.T, name string) error {
	const sent = 32 << 20
	big := exec.CommandContext(ctx, "ip", "link", "set", "lo", "gso_max_size", "524280",
		"gro_max_size", "524280").Run()
	s, err := Open(name, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	b := &book{}
	end := make(chan error)
	go func() { end <- track(s, b, 2) }()
	if err := transfer(ctx, sent); err != nil {
		return err
	}
	if err := <-end; err != nil {
		return err
	}
	c := b.conns[0]
	n := [2]capture.Count{c.Halves[0].Count, c.Halves[1].Count}
	// TCP itself sends some again when the receiver has no room; what is captured twice would be all.
	if len(b.conns) != 1 || n[0].Bytes != sent || n[0].Repeated > sent/2 || n[0].Gaps+n[1].Gaps > 0 || n[1].Bytes != 1 {
		return fmt.Errorf("%d connections; %+v", len(b.conns), n)
	}
	if big == nil && b.largest <= 1<<16 {
		return fmt.Errorf("the largest segment has %d bytes, and lo makes larger ones", b.largest)
	}
	t.Logf("largest segment: %d bytes", b.largest)
	return nil
}

// track reads packets until as many directions have ended.
func track(s *Source, b *book, ends int) error {
	tracker := capture.NewTracker(capture.Config{}, b)
	for b.ends < ends {
		p, err := s.Next()
		if err != nil {
			return err
		}
		if p.Dropped > 0 || time.Since(p.Time).Abs() > time.Minute {
			return fmt.Errorf("packet %d of %v: dropped before it: %d", p.Number, p.Time, p.Dropped)
		}
		tracker.Packet(p)
	}
	return nil
}

// transfer sends bytes to a server, which answers with one.
func transfer(ctx context.Context, n int) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp6", "[::1]:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	out, err := new(net.Dialer).DialContext(ctx, "tcp6", ln.Addr().String())
	if err != nil {
		return err
	}
	in, err := ln.Accept()
	if err != nil {
		return err
	}
	go func() {
		defer in.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(in, int64(n)))
		_, _ = in.Write([]byte{1})
	}()
	defer out.Close()
	if _, err := out.Write(make([]byte, n)); err != nil {
		return err
	}
	_, err = io.ReadAll(out)
	return err
}

// TestDrops has more packets come than there is room for: each is there or counted.
func TestDrops(t *testing.T) {
	alone(t, func(ctx context.Context) error {
		const datagrams = 1000
		s, err := Open("lo", Config{Buffer: 1 << 14})
		if err != nil {
			return err
		}
		defer s.Close()
		send, err := datagramSender(ctx)
		if err != nil {
			return err
		}
		got, dropped := uint64(0), uint64(0)
		for range datagrams / 2 {
			send()
		}
		for range 10 { // room for those that come behind the lost ones
			p, err := s.Next()
			if err != nil {
				return err
			}
			got, dropped = got+1, dropped+p.Dropped
		}
		if dropped > 0 {
			return fmt.Errorf("%d packets are said to be dropped before they were", dropped)
		}
		for range datagrams / 2 {
			send()
		}
		rest, between, err := drain(s)
		got, dropped = got+rest, dropped+between
		lost := lost(s)
		if err != nil || between == 0 || lost == 0 || got+dropped+lost != datagrams {
			return fmt.Errorf("%d packets, %d dropped between them and %d at last, want %d in all (%w)",
				got, dropped, lost, datagrams, err)
		}
		return nil
	})
}

// drain counts the packets that are there, and those that were dropped before them.
func drain(s *Source) (got, dropped uint64, err error) {
	none := errors.New("none is there")
	s.idle = func() error { return none }
	for {
		p, err := s.Next()
		if errors.Is(err, none) {
			return got, dropped, nil
		}
		if err != nil {
			return got, dropped, err
		}
		got, dropped = got+1, dropped+p.Dropped
	}
}

// datagramSender returns what sends a datagram to a socket that exists.
func datagramSender(ctx context.Context) (func(), error) {
	to, err := new(net.ListenConfig).ListenPacket(ctx, "udp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = to.Close() })
	at := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to.LocalAddr().String()))
	return func() { _, _ = to.WriteTo(make([]byte, 100), at) }, nil
}

// TestInterrupt has a wait end.
func TestInterrupt(t *testing.T) {
	alone(t, func(ctx context.Context) error {
		s, err := Open("lo", Config{})
		if err != nil {
			return err
		}
		defer s.Close()
		s.idle = func() error { s.Interrupt(); return nil }
		for range 2 {
			if _, err := s.Next(); err != io.EOF {
				return fmt.Errorf("%w, want %w", err, io.EOF)
			}
		}
		return nil
	})
}

// TestOpenErrors has interfaces that are not there.
func TestOpenErrors(t *testing.T) {
	if _, err := Open("no-such-interface", Config{}); err == nil || !strings.Contains(err.Error(), "no such network interface") {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		if _, err := Open("lo", Config{}); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	}
}

// TestTag puts a VLAN tag back.
func TestTag(t *testing.T) {
	aux := make([]byte, auxLen)
	nativeOrder.PutUint32(aux, unix.TP_STATUS_VLAN_VALID|unix.TP_STATUS_VLAN_TPID_VALID)
	nativeOrder.PutUint16(aux[auxTag:], 0x2007)
	nativeOrder.PutUint16(aux[auxKind:], 0x88a8)
	space := []byte("----ABCDEFabcdefTTpayload")
	if got := tagOf(aux).tagged(space, space[vlanLen:]); string(got) != "ABCDEFabcdef\x88\xa8\x20\x07TTpayload" {
		t.Errorf("%q", got)
	}
	nativeOrder.PutUint32(aux, 0)
	if got := tagOf(aux).tagged(space, space[vlanLen:]); !bytes.Equal(got, space[vlanLen:]) {
		t.Errorf("%q", got)
	}
}

// lost returns how many packets were dropped after the last one.
func lost(s *Source) (n uint64) {
	_ = s.raw.Control(func(fd uintptr) {
		if stats, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			n = max(uint64(stats.Drops), s.told) - s.told
		}
	})
	return n
}
