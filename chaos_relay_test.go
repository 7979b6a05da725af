package iwarp_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A fault is what a relay does to a connection.
type fault uint8

const (
	faultNone    fault = iota
	faultCut           // nothing more arrives, and nothing tells
	faultCorrupt       // one bit is turned over
	faultReset         // both ends see a RST
	faultFIN           // one end sees a FIN, and nothing after it
	numFaults
)

func (f fault) String() string {
	return [numFaults]string{"no fault", "cut", "corrupt", "reset", "FIN"}[f]
}

// A mishap is a fault, and where in which direction it happens.
type mishap struct {
	fault fault
	lane  int // 0: from the Initiator
	at    uint64
}

func (m mishap) String() string {
	return fmt.Sprintf("%v in direction %d at %d", m.fault, m.lane, m.at)
}

// startupBytes is more than the startup frames of a conversation take. No bit of those
// is turned over, as MPA does not protect them.
const startupBytes = 64

func newMishap(r *rand.Rand) mishap {
	m := mishap{lane: r.IntN(2)}
	if r.IntN(2) > 0 {
		m.fault = fault(1 + r.IntN(int(numFaults)-1))
	}
	m.at = uint64(r.IntN(1 << (3 + r.IntN(17))))
	if m.fault == faultCorrupt {
		m.at += startupBytes
	}
	return m
}

// A chaosRelay stands between two ends of one connection: it delays, and does harm once.
type chaosRelay struct {
	ln     *net.TCPListener
	to     string
	delay  [2]time.Duration
	mishap mishap

	hit   atomic.Bool // the mishap has happened
	conns [2]*net.TCPConn
	said  [2][]byte // by each end, before the mishap
	done  chan struct{}
}

func newChaosRelay(t testing.TB, to net.Addr, delay [2]time.Duration, m mishap) *chaosRelay {
	t.Helper()
	ln, err := testrig.ListenTCP(t.Context())
	rig.Must(t, err)
	r := &chaosRelay{ln: ln, to: to.String(), delay: delay, mishap: m, done: make(chan struct{})}
	go r.run()
	return r
}

func (r *chaosRelay) run() {
	defer close(r.done)
	near, err := r.ln.AcceptTCP()
	_ = r.ln.Close() // there is no second attempt
	if err != nil {
		return
	}
	far, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = near.Close()
		return
	}
	r.conns = [2]*net.TCPConn{near, far.(*net.TCPConn)}
	var lanes sync.WaitGroup
	for i := range r.conns {
		lanes.Go(func() { r.carry(i) })
	}
	lanes.Wait()
	_, _ = near.Close(), far.Close()
}

// A parcel is some bytes and when they are due, or how the direction has ended.
type parcel struct {
	bytes []byte
	due   time.Time
	err   error
}

// carry brings what one end sends to the other.
func (r *chaosRelay) carry(lane int) {
	way := make(chan parcel, 1<<10)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 1<<14)
			n, err := r.conns[lane].Read(b)
			r.said[lane] = append(r.said[lane], b[:n]...)
			way <- parcel{b[:n], time.Now().Add(r.delay[lane]), err}
			if err != nil {
				return
			}
		}
	}()
	var at uint64
	gone := false // the other end gets nothing more
	for p := range way {
		if gone {
			continue
		}
		time.Sleep(time.Until(p.due))
		gone = r.deliver(lane, p, at)
		at += uint64(len(p.bytes))
	}
}

// deliver passes on what has arrived, and reports whether the other end gets nothing more.
func (r *chaosRelay) deliver(lane int, p parcel, at uint64) (gone bool) {
	to := r.conns[1-lane]
	if m := r.mishap; m.fault != faultNone && m.lane == lane && m.at >= at && m.at < at+uint64(len(p.bytes)) {
		if r.hit.Store(true); r.harm(to, p.bytes, int(m.at-at)) {
			return true
		}
	}
	if len(p.bytes) > 0 {
		_, _ = to.Write(p.bytes)
	}
	switch p.err {
	case nil:
		return false
	case io.EOF:
		_ = to.CloseWrite()
	default:
		_ = script.NewLink(to).Reset()
	}
	return true
}

// harm does what the mishap says to bytes of which the n-th is concerned.
func (r *chaosRelay) harm(to *net.TCPConn, b []byte, n int) (gone bool) {
	switch r.mishap.fault {
	case faultCorrupt:
		b[n] ^= 1 << (r.mishap.at % 8)
		return false
	case faultReset:
		for _, c := range r.conns {
			_ = script.NewLink(c).Reset()
		}
	case faultFIN:
		_, _ = to.Write(b[:n])
		_ = to.CloseWrite()
	case faultCut:
		_, _ = to.Write(b[:n])
	}
	return true
}

// terminates checks what an end has said: every FPDU is whole and good, but for the last
// one, and nothing follows a Terminate. It returns how many Terminates there were.
//
// RFC 5040, section 4.8: nothing follows a Terminate in its direction.
func (r *chaosRelay) terminates(lane int) (n int, err error) {
	ours, err := mpa.ParseStartup(r.said[lane])
	if err != nil {
		return 0, nil //nolint:nilerr // it has not come so far
	}
	theirs, err := mpa.ParseStartup(r.said[1-lane])
	if err != nil {
		return 0, nil //nolint:nilerr // the same
	}
	rest := r.said[lane][len(ours):]
	for reader := mpa.NewReader(theirs.M(), true); ; {
		f, size, err := reader.Next(rest)
		if size == 0 || err != nil {
			return n, err
		}
		if n > 0 {
			return n, fmt.Errorf("an FPDU at %d follows a Terminate", f.Offset)
		}
		if len(f.ULPDU) > 1 && f.ULPDU[0]&0x80 == 0 {
			if _, op := rdmap.ParseControl(f.ULPDU[1]); op == rdmap.OpTerminate {
				n++
			}
		}
		rest = rest[size:]
	}
}
