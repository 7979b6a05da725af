package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// An AwareConn is one end of a connection of an MPA-aware TCP in memory. What is written goes over a link segment by
// segment, and what the receiving end has of it in order can be read there.
type AwareConn struct {
	*testrig.Conn // what arrives in order
	in, Out       *wire
	read          uint64 // bytes
}

// A wire is one direction: segments on their way to the end that has in, and what that has of them.
type wire struct {
	link  AwareLink
	order io.Writer // to the receiving end, in order
	close func()    // closes the half, or all

	mu       sync.Mutex
	changed  *sync.Cond
	onWay    []AwareSegment
	sent     uint64
	fin, all bool // the sender has closed its half, or all
	lost     bool
	ahead    map[uint64][]byte
	next     uint64 // in order at the receiver

	Sniff func([]byte) // gets each segment that is sent

	showing sync.Mutex
	Show    func(at uint64, data []byte)
	base    uint64
}

// An AwareSegment is bytes of a stream, with where they begin.
type AwareSegment struct {
	At uint64
	B  []byte
}

// An AwareLink says what becomes of segments.
type AwareLink struct {
	EMSS     int
	Disorder int // how many segments may be overtaken by one
	// some are cut in two, by a router that does so, and some join the one before that is still on its way
	Recut  bool
	Joined *atomic.Int32 // counts those, if it is set
	rand   *rand.Rand
}

// AwarePair returns both ends of a connection.
func AwarePair(l AwareLink) (a, b *AwareConn) {
	x, y := testrig.Pipe("a", "b")
	_, _ = x.SetWriteBuffer(1<<18), y.SetWriteBuffer(1<<18)
	l.rand = rand.New(rand.NewPCG(rand.Uint64(), 0))
	to, from := newWire(l, x), newWire(l, y)
	return &AwareConn{Conn: x, in: from, Out: to}, &AwareConn{Conn: y, in: to, Out: from}
}

func newWire(l AwareLink, c *testrig.Conn) *wire {
	w := &wire{link: l, order: c, ahead: make(map[uint64][]byte)}
	w.link.rand = rand.New(rand.NewPCG(l.rand.Uint64(), 0))
	w.changed = sync.NewCond(&w.mu)
	w.close = func() {
		w.mu.Lock()
		all := w.all
		w.mu.Unlock()
		if all {
			_ = c.Close()
		} else {
			_ = c.CloseWrite()
		}
	}
	go w.carry()
	return w
}

const wireRoom = 64 // segments on their way at most

// write puts slices on the way, each in segments of its own. It waits until there is room for one.
func (w *wire) write(v [][]byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.onWay) >= wireRoom && !w.fin && !w.lost {
		w.changed.Wait()
	}
	if w.fin || w.lost {
		return 0, net.ErrClosed
	}
	for _, b := range v {
		if len(w.onWay) >= wireRoom {
			break
		}
		n += len(b)
		for len(b) > 0 {
			part := b[:min(len(b), w.link.EMSS)]
			b = b[len(part):]
			if w.link.Recut && len(part) > 1 && w.link.rand.IntN(4) == 0 {
				cut := 1 + w.link.rand.IntN(len(part)-1)
				w.put(part[:cut])
				part = part[cut:]
			}
			w.put(part)
		}
	}
	w.changed.Broadcast()
	return n, nil
}

func (w *wire) emss() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link.EMSS
}

func (w *wire) SetEMSS(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.link.EMSS = n
}

func (w *wire) put(b []byte) {
	if w.Sniff != nil {
		w.Sniff(b)
	}
	w.sent += uint64(len(b))
	if w.link.Recut && w.link.rand.IntN(4) == 0 && w.join(b) {
		return
	}
	w.onWay = append(w.onWay, AwareSegment{w.sent - uint64(len(b)), bytes.Clone(b)})
}

// join puts bytes at the end of the segment before them, if that is still on its way.
func (w *wire) join(b []byte) bool {
	if len(w.onWay) == 0 {
		return false
	}
	last := &w.onWay[len(w.onWay)-1]
	if last.At+uint64(len(last.B)+len(b)) != w.sent || len(last.B) > 4*w.link.EMSS { // it has arrived, or is full
		return false
	}
	last.B = append(last.B, b...)
	if w.link.Joined != nil {
		w.link.Joined.Add(1)
	}
	return true
}

// carry has segments arrive until the sender has closed.
func (w *wire) carry() {
	for {
		w.mu.Lock()
		for len(w.onWay) == 0 && !w.fin && !w.lost {
			w.changed.Wait()
		}
		if w.lost {
			w.mu.Unlock()
			return
		}
		if len(w.onWay) == 0 {
			w.mu.Unlock()
			w.close()
			w.waitAll()
			return
		}
		i := w.link.rand.IntN(min(len(w.onWay), 1+w.link.Disorder))
		s := w.onWay[i]
		w.onWay = append(w.onWay[:i], w.onWay[i+1:]...)
		w.changed.Broadcast()
		w.mu.Unlock()
		w.arrive(s)
	}
}

// waitAll closes all of the connection once that is wanted, after the half.
func (w *wire) waitAll() {
	w.mu.Lock()
	for !w.all && !w.lost {
		w.changed.Wait()
	}
	w.mu.Unlock()
	w.close()
}

// arrive is what the receiving TCP does with a segment.
func (w *wire) arrive(s AwareSegment) {
	if s.At > w.next {
		w.ahead[s.At] = s.B
		w.ShowAhead(s)
		return
	}
	for b := s.B; b != nil; b = w.ahead[w.next] {
		delete(w.ahead, w.next)
		w.next += uint64(len(b))
		_, _ = w.order.Write(b)
	}
}

func (w *wire) ShowAhead(s AwareSegment) {
	w.showing.Lock()
	defer w.showing.Unlock()
	if w.Show != nil && s.At >= w.base {
		b := bytes.Clone(s.B)
		w.Show(s.At-w.base, b)
		clear(b) // nobody may keep it
	}
}

func (c *AwareConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read += uint64(n)
	return n, err
}

func (c *AwareConn) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = c.Out.write([][]byte{b[n:min(n+c.Out.emss(), len(b))]})
		n += m
	}
	return n, err
}

// WriteFPDUs has each FPDU begin a segment.
func (c *AwareConn) WriteFPDUs(fpdus [][]byte) (int, error) { return c.Out.write(fpdus) }

// EMSS is what a segment carries, in bytes.
func (c *AwareConn) EMSS() int { return c.Out.emss() }

// ShowAhead has f called with what arrives ahead of order.
func (c *AwareConn) ShowAhead(f func(at uint64, data []byte)) {
	c.in.showing.Lock()
	defer c.in.showing.Unlock()
	c.in.Show, c.in.base = f, c.read
}

// CloseWrite ends the direction to the peer.
func (c *AwareConn) CloseWrite() error {
	c.Out.update(func() { c.Out.fin = true })
	return nil
}

// Close is TCP's: what was written still arrives.
func (c *AwareConn) Close() error {
	c.Out.update(func() { c.Out.fin, c.Out.all = true, true })
	return nil
}

// Reset ends both directions at once.
func (c *AwareConn) Reset() error {
	_ = c.SetLinger(0)
	err := c.Conn.Close()
	c.Out.update(func() { c.Out.lost = true })
	c.in.update(func() { c.in.lost = true })
	return err
}

func (w *wire) update(how func()) {
	w.mu.Lock()
	how()
	w.changed.Broadcast()
	w.mu.Unlock()
}

// An awareStack is an MPA-aware TCP in memory.
type awareStack struct {
	link  AwareLink
	peers chan net.Conn
	name  testAddr
	once  sync.Once
	done  chan struct{}
}

func newAwareStack(l AwareLink) *awareStack {
	return &awareStack{link: l, peers: make(chan net.Conn), name: "stack", done: make(chan struct{})}
}

func (s *awareStack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" || address != string(s.name) {
		return nil, fmt.Errorf("dial %s %s", network, address)
	}
	a, b := AwarePair(s.link)
	select {
	case s.peers <- b:
		return a, nil
	case <-s.done:
	case <-ctx.Done():
	}
	_, _ = a.Reset(), b.Reset()
	return nil, net.ErrClosed
}

func (s *awareStack) Listen(context.Context, string, string) (net.Listener, error) { return s, nil }

func (s *awareStack) Addr() net.Addr { return s.name }

func (s *awareStack) Accept() (net.Conn, error) {
	select {
	case c := <-s.peers:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *awareStack) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// awarely connects by an MPA-aware TCP, with markers in both directions.
func (s *Setup) awarely(l AwareLink) {
	stack := newAwareStack(l)
	s.Stack, s.Listen.Stack = stack, stack
	s.MPA.Markers, s.Accept.MPA.Markers = true, true
}
