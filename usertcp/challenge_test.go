package usertcp

import (
	"bytes"
	"io"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// A fork is taps with a flow whose TCP does nothing, and what they send and deliver.
type fork struct {
	*taps
	flow            *flow
	mu              sync.Mutex
	sent, delivered [][]byte
}

// did returns what was sent and delivered.
func (k *fork) did() (sent, delivered [][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent, k.delivered
}

// keep returns what keeps packets.
func (k *fork) keep(in *[][]byte) func([]byte) {
	return func(p []byte) {
		k.mu.Lock()
		defer k.mu.Unlock()
		*in = append(*in, bytes.Clone(p))
	}
}

// forkAt returns one that expects next, and grants a window.
func forkAt(next, window uint32, local, remote string) *fork {
	k := &fork{taps: newTaps(&PipeEnd{}, 1500)}
	k.send = k.keep(&k.sent)
	deliver := k.keep(&k.delivered)
	k.deliver = func(p []byte, _ bool) { deliver(p) }
	k.state = func(ends) tcp.EndpointState { return tcp.StateEstablished }
	f := k.claim(ends{local: netip.MustParseAddrPort(local), remote: netip.MustParseAddrPort(remote)})
	f.blank, f.synced, f.irs = false, true, next-1
	f.rcvNxt, f.next, f.coming, f.rcvEdge = next, next, next, next+window
	f.taken.Store(next)
	f.told.Store(true)
	f.sndNxt, f.sndUna, f.maxWindow = 100, 0xffffff00, 1000
	f.agreed, f.ours, f.theirs = header.TCPSynOptions{WS: 2, TS: true}, header.TCPSynOptions{WS: 3},
		header.TCPSynOptions{WS: 4}
	f.stamp, f.recent = 11, 22
	k.flow = f
	return k
}

// from returns a segment of the peer's.
func (k *fork) from(flags header.TCPFlags, seq, ack uint32) []byte {
	p := acknowledgement(k.flow.remote, k.flow.local, header.TCPFields{SeqNum: seq, AckNum: ack, WindowSize: 1}, nil)
	s, _ := parseSegment(p)
	s.tcp.SetFlags(uint8(flags))
	lengthen(p, len(s.tcp))
	return p
}

// TestBlindNumbers: what is judged by numbers is, wherever these wrap, whatever the version of IP is.
//
// Proves U01, U02, U03, U05, U06: RFC 5961, sections 3.2, 4.2 and 5.2.
func TestBlindNumbers(t *testing.T) {
	const rst, syn, ack = header.TCPFlagRst, header.TCPFlagSyn, header.TCPFlagAck
	for _, next := range []uint32{1, 1 << 31, 0xffffffff, 0, 0xfffff000, 0x7fffffff} {
		for _, c := range []struct {
			name        string
			flags       header.TCPFlags
			seq, ack    uint32 // seq is counted from what is next
			window      uint32
			refused, is bool // is asked
		}{
			{"next", rst, 0, 0, 8000, false, false},
			{"next, no window", rst, 0, 0, 0, false, false},
			{"after it, no window", rst, 1, 0, 0, true, false},
			{"first", rst, 1, 0, 8000, true, true},
			{"last", rst, 7999, 0, 8000, true, true},
			{"edge", rst | ack, 8000, 100, 8000, true, false},
			{"behind", rst | ack, 0xffffffff, 100, 8000, true, false},
			{"half", rst, 1 << 31, 0, 8000, true, false},
			{"in a large window", rst, 1<<30 - 1, 0, 1 << 30, true, true},
			{"SYN behind", syn, 0xffffffff, 0, 8000, true, true},
			{"SYN and ACK", syn | ack, 0, 100, 8000, true, true},
			{"SYN far", syn, 1 << 31, 0, 8000, true, true},
			{"all that was sent", ack, 0, 100, 8000, false, false},
			{"more", ack, 0, 101, 8000, true, true},
			{"half more", ack, 0, 1<<31 + 99, 8000, true, true},
			{"what was acknowledged", ack, 0, 0xffffff00, 8000, false, false},
			{"the largest window ago", ack, 0, 0xffffff00 - 1000, 8000, false, false},
			{"longer ago", ack, 0, 0xffffff00 - 1001, 8000, true, true},
			{"FIN, more", ack | header.TCPFlagFin, 0, 101, 8000, true, true},
			{"nothing", header.TCPFlagPsh, 0, 101, 8000, false, false},
		} {
			for _, at := range [][2]string{{"192.0.2.2:80", "192.0.2.1:20000"},
				{"[2001:db8::2]:80", "[2001:db8::1]:20000"}} {
				k := forkAt(next, c.window, at[0], at[1])
				v := k.inbound(k.from(c.flags, next+c.seq, c.ack))
				if (v == refused) != c.refused || len(k.sent) == 1 != c.is || len(k.delivered) > 0 {
					t.Errorf("%s at %#x, %s: %v, and %d sent", c.name, next, at[1], v, len(k.sent))
				}
				if len(k.sent) == 1 {
					k.wantsChallenge(t, next, c.window)
				}
			}
		}
	}
}

// wantsChallenge compares what was sent.
func (k *fork) wantsChallenge(t *testing.T, next, window uint32) {
	t.Helper()
	s, ok := parseSegment(k.sent[0])
	o := header.ParseTCPOptions(s.tcp.Options())
	if !ok || !s.intact() || s.from != k.flow.local || s.to != k.flow.remote ||
		s.flags != header.TCPFlagAck || s.seq != 100 || s.ack != next ||
		uint32(s.tcp.WindowSize()) != min(window>>3, 65535) || o.TSVal != 11 || o.TSEcr != 22 {
		t.Errorf("asked by %+v, %+v", s, o)
	}
}

// TestThrottle: a connection asks as often as it may in any period, in virtual time, whatever others do.
//
// Proves U07: RFC 5961, section 7.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := forkAt(1000, 8000, "192.0.2.2:80", "192.0.2.1:20000")
		asks := func(want int) {
			t.Helper()
			k.sent = nil
			for range 100 {
				k.inbound(k.from(header.TCPFlagRst, 1001, 0))
			}
			if len(k.sent) != want {
				t.Errorf("asked %d times, want %d", len(k.sent), want)
			}
		}
		k.inbound(k.from(header.TCPFlagSyn, 1, 0))
		time.Sleep(time.Second)
		asks(challengeACKs - 1)
		time.Sleep(challengePeriod - time.Second - 1)
		asks(0)
		time.Sleep(time.Nanosecond)
		asks(1)
		time.Sleep(challengePeriod)
		asks(challengeACKs)
		other := forkAt(1000, 8000, "192.0.2.2:80", "192.0.2.1:20001")
		k.flows[other.flow.ends], k.flow = other.flow, other.flow
		asks(challengeACKs)
		k.throttle = throttle{2, time.Minute}
		other.flow.challenges = nil
		asks(2)
		time.Sleep(time.Minute)
		asks(2)
	})
}

// TestResetWaits: a RST behind what has come waits for TCP to take that, and for nothing else, in virtual time.
//
// Proves U02, U03: RFC 5961, section 3.2.
func TestResetWaits(t *testing.T) {
	for _, c := range []struct {
		name            string
		taken           uint32 // by TCP, after a millisecond
		sent, delivered int
	}{
		{"all", 1100, 0, 1}, {"more", 1101, 0, 0}, {"less", 1099, 1, 0}, {"nothing", 1000, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := forkAt(1000, 8000, "192.0.2.2:80", "192.0.2.1:20000")
				data, _ := parseSegment(k.from(header.TCPFlagAck, 1000, 100))
				data.payload = make([]byte, 100)
				k.flow.inbound(&data)
				rst := k.from(header.TCPFlagRst, 1100, 0)
				for range 2 {
					v := k.inbound(rst)
					if sent, delivered := k.did(); v != refused || len(sent)+len(delivered) > 0 {
						t.Fatalf("%v at once, %d sent", v, len(sent))
					}
				}
				time.Sleep(time.Millisecond)
				k.tells(c.taken)
				synctest.Wait()
				if sent, delivered := k.did(); len(delivered) != c.delivered || len(sent) > 0 {
					t.Errorf("%d delivered, %d sent when TCP has taken it", len(delivered), len(sent))
				}
				time.Sleep(resetWait)
				synctest.Wait()
				sent, delivered := k.did()
				if len(sent) != c.sent || len(delivered) != c.delivered || c.delivered > 0 &&
					!bytes.Equal(delivered[0], rst) {
					t.Errorf("%d delivered, %d sent in the end", len(delivered), len(sent))
				}
				k.flow.mu.Lock()
				defer k.flow.mu.Unlock()
				if k.flow.reset != nil || k.flow.held.Load() {
					t.Error("it waits on")
				}
			})
		})
	}
}

// tells has TCP tell of itself, with what it has taken.
func (k *fork) tells(taken uint32) {
	f := k.flow
	k.probe(&tcp.TCPEndpointState{
		ID: tcp.TCPEndpointID{
			LocalAddress: tcpip.AddrFromSlice(f.local.Addr().AsSlice()), LocalPort: f.local.Port(),
			RemoteAddress: tcpip.AddrFromSlice(f.remote.Addr().AsSlice()), RemotePort: f.remote.Port(),
		},
		TCPEndpointStateInner: tcp.TCPEndpointStateInner{SendTSOk: true, RecentTS: 22},
		Receiver: tcp.TCPReceiverState{RcvNxt: seqnum.Value(taken),
			RcvAcc: seqnum.Value(taken + 8000), RcvWndScale: 3},
		Sender: tcp.TCPSenderState{SndUna: 50, SndNxt: 100, SndWnd: 40},
	})
}

// TestHeed: TCP may have sent another SYN than the one that a flow began with, before it or after. Until it tells, it
// answers itself what acknowledges nothing of that one, and then its numbers count.
//
// Proves U06: RFC 5961, section 5.2.
func TestHeed(t *testing.T) {
	for _, iss := range []uint32{1 << 30, 1<<31 + 1<<30} {
		k := forkAt(1000, 8000, "192.0.2.2:80", "192.0.2.1:20000")
		k.flow.told.Store(false)
		k.flow.sndNxt, k.flow.sndUna = iss, iss
		right := k.from(header.TCPFlagAck, 1000, 100)
		if v := k.inbound(right); v != refused || len(k.delivered) != 1 || len(k.sent) > 0 {
			t.Fatalf("%v, %d delivered, %d sent before TCP has told", v, len(k.delivered), len(k.sent))
		}
		if s, ok := parseSegment(k.delivered[0]); !ok || !s.intact() || s.seq != 999 ||
			s.flags != header.TCPFlagAck || s.to != k.flow.local {
			t.Errorf("TCP is asked by %+v", s)
		}
		k.tells(1000)
		if v := k.inbound(right); v == refused {
			t.Error("the right one is refused when TCP has told")
		}
		if v := k.inbound(k.from(header.TCPFlagAck, 1000, iss)); v != refused || len(k.sent) != 1 {
			t.Errorf("%v, %d sent: another is not", v, len(k.sent))
		}
	}
}

// TestBlindBlank: a connection of which the tap knows nothing is safe as soon as TCP tells of it, and shows nothing.
//
// Proves U01, U03, U06: RFC 5961, sections 3.2 and 5.2.
func TestBlindBlank(t *testing.T) {
	k := forkAt(1000, 8000, "192.0.2.2:80", "192.0.2.1:20000")
	k.forget(k.flow)
	k.flow = k.claim(k.flow.ends)
	k.flow.showTo(func(uint64, []byte) { t.Error("something is shown") })
	k.tells(1000)
	k.flow.stamp = 11 // of the first packet that it sends
	for name, c := range map[string]struct {
		packet []byte
		sent   int
	}{
		"RST beyond the window": {k.from(header.TCPFlagRst, 9000, 0), 0},
		"RST within it":         {k.from(header.TCPFlagRst, 8999, 0), 1},
		"an ACK of too much":    {k.from(header.TCPFlagAck, 1000, 101), 1},
		"an ACK of long ago":    {k.from(header.TCPFlagAck, 1000, 50-41), 1},
	} {
		k.sent = nil
		if v := k.inbound(c.packet); v != refused || len(k.sent) != c.sent {
			t.Errorf("%s: %v, %d sent", name, v, len(k.sent))
		}
		if len(k.sent) > 0 {
			k.wantsChallenge(t, 1000, 8000)
		}
	}
	content := made{seq: 1100, ack: 100, flags: header.TCPFlagAck, time: 80, data: []byte("ahead")}
	if v := k.inbound(content.packet(1)); v != notLookedAt {
		t.Errorf("bytes ahead are %v", v)
	}
}

// TestLargestWindow: only what lies within our window says how large the peer's is, and what it has acknowledged.
//
// Proves U06: RFC 5961, section 5.2.
func TestLargestWindow(t *testing.T) {
	k := forkAt(1000, 8000, "192.0.2.2:80", "192.0.2.1:20000")
	segment := func(seq, ack uint32, window uint16) []byte {
		return acknowledgement(k.flow.remote, k.flow.local,
			header.TCPFields{SeqNum: seq, AckNum: ack, WindowSize: window}, nil)
	}
	k.inbound(segment(9001, 100, 60000))
	k.inbound(segment(999, 100, 60000))
	if v := k.inbound(segment(1000, 0xffffff00-1001, 1)); v != refused {
		t.Errorf("%v: an ACK from before the largest window", v)
	}
	k.inbound(segment(9000, 0xffffff00, 200)) // 3200
	if v := k.inbound(segment(1000, 0xffffff00-3200, 1)); v == refused {
		t.Error("an ACK of the largest window ago is refused")
	}
	k.inbound(segment(1000, 100, 1))
	if v := k.inbound(segment(1000, 0xffffff00-3200, 1)); v != refused {
		t.Errorf("%v: the same, when more is acknowledged", v)
	}
}

// TestBothRoles: whoever has dialed, over IPv4 and IPv6, a RST within the window changes nothing, and the next one
// ends the connection.
//
// Proves U02, U03: RFC 5961, section 3.2.
func TestBothRoles(t *testing.T) {
	for _, address := range []string{"192.0.2.2:7174", "[2001:db8::2]:7174"} {
		for role := range 2 {
			a, b := stacks(t, Config{KeepAlive: time.Hour}, Path{}, Path{})
			c, s := connect(t, a, b, address)
			victim, other := c, s
			if role == 1 {
				victim, other = s, c
			}
			_, err := other.Write([]byte("one"))
			must(t, err)
			_, err = io.ReadFull(victim, make([]byte, 3))
			must(t, err)
			k := &fork{taps: victim.stack.taps, flow: victim.flow}
			bring := func(packet []byte) {
				if victim.stack.taps.inbound(packet) != refused {
					victim.stack.nic.deliver(packet, true)
				}
			}
			next := k.flow.taken.Load()
			bring(k.from(header.TCPFlagRst, next+1, 0))
			bring(k.from(header.TCPFlagSyn, next+1, 0))
			_, err = other.Write([]byte("two"))
			must(t, err)
			_, err = io.ReadFull(victim, make([]byte, 3))
			must(t, err)
			bring(k.from(header.TCPFlagRst, next+3, 0))
			gone(t, victim)
		}
	}
}

// BenchmarkInbound is what the tap costs for a segment that nobody wants shown, and for an acknowledgement.
func BenchmarkInbound(b *testing.B) {
	for name, n := range map[string]int{"bytes": 1400, "ACK": 0} {
		b.Run(name, func(b *testing.B) {
			ts, _ := fuzzFlow()
			packet := made{seq: 1000, ack: 5000, flags: header.TCPFlagAck, time: 80, data: make([]byte, n)}.packet(1)
			b.ReportAllocs()
			for b.Loop() {
				ts.inbound(packet)
			}
		})
	}
}
