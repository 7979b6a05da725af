package sctpudp

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// A recorder is a socket that notes the SACKs that leave.
type recorder struct {
	*testrig.Socket
	slow atomic.Int64 // how long a packet takes to leave, as a time.Duration
	mu   sync.Mutex
	at   []time.Time
	tsns []uint32
}

func (r *recorder) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	time.Sleep(time.Duration(r.slow.Load()))
	all, _ := chunk.In(b)
	r.mu.Lock()
	for _, c := range all {
		if tsn, _, ok := c.Sack(); ok && c.Type == chunk.TypeSack {
			r.at, r.tsns = append(r.at, time.Now()), append(r.tsns, tsn)
		}
	}
	r.mu.Unlock()
	return r.Socket.WriteToUDPAddrPort(b, to)
}

// since returns when SACKs have left, counted from a time on, and what they acknowledge.
func (r *recorder) since(began time.Time) (after []time.Duration, tsns []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, at := range r.at {
		if !at.Before(began) {
			after, tsns = append(after, at.Sub(began)), append(tsns, r.tsns[i])
		}
	}
	return after, tsns
}

// recorded brings up an association, in which a message has come to the passive side, whose SACKs are recorded.
func recorded(t *testing.T) (active, passive *end, r *recorder) {
	t.Helper()
	a, b := testrig.Link{Delay: 10 * time.Millisecond}.Sockets()
	r = &recorder{Socket: b}
	client, server := New(a, false, Config{}), New(r, true, Config{})
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	active, passive = dial(t, client, server)
	testrig.Must(t, active.Send(sctp.Message{PPID: sctp.PPIDSegment, Data: []byte("message")}))
	<-passive.messages
	time.Sleep(time.Second)
	return active, passive, r
}

// terminate is the message that ends a session, here without one.
var terminate = sctp.Message{PPID: sctp.PPIDControl,
	Data: sctp.AppendControl(nil, &sctp.Control{Function: sctp.FunctionTerminate})}

// TestTerminateAcknowledged: a Terminate of a session is acknowledged when it comes, and not 200 ms later as a segment
// may be.
func TestTerminateAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive, r := recorded(t)
		for _, c := range []struct {
			m    sctp.Message
			want time.Duration
		}{
			{terminate, 0}, {sctp.Message{PPID: sctp.PPIDSegment, Data: terminate.Data}, 200 * time.Millisecond},
		} {
			testrig.Must(t, active.Send(c.m))
			<-passive.messages
			came := time.Now()
			time.Sleep(time.Second)
			if after, _ := r.since(came); !slices.Equal(after, []time.Duration{c.want}) {
				t.Errorf("PPID %d: SACKs left after %v", c.m.PPID, after)
			}
		}
	})
}
