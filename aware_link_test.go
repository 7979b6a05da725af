package iwarp_test

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

// An awareConn is one end of a connection of an MPA-aware TCP in memory. What is written goes over a link segment by
// segment, and what the receiving end has of it in order can be read there.
type awareConn struct {
	*testrig.Conn // what arrives in order
	in, out       *wire
	read          uint64 // octets
}

// A wire is one direction: segments on their way to the end that has in, and what that has of them.
type wire struct {
	link  link
	order io.Writer // to the receiving end, in order
	close func()    // closes the half, or all

	mu       sync.Mutex
	changed  *sync.Cond
	onWay    []segment
	sent     uint64
	fin, all bool // the sender has closed its half, or all
	lost     bool
	ahead    map[uint64][]byte
	next     uint64 // in order at the receiver

	sniff func([]byte) // gets each segment that is sent

	showing sync.Mutex
	show    func(at uint64, octets []byte)
	base    uint64
}

type segment struct {
	at uint64
	b  []byte
}

// A link says what becomes of segments.
type link struct {
	emss     int
	disorder int           // how many segments may be overtaken by one
	recut    bool          // some are cut in two, by a router that does so, and some join the one before that is still on its way
	joined   *atomic.Int32 // counts those, if it is set
	rand     *rand.Rand
}

// awarePair returns both ends of a connection.
func awarePair(l link) (a, b *awareConn) {
	x, y := testrig.Pipe("a", "b")
	_, _ = x.SetWriteBuffer(1<<18), y.SetWriteBuffer(1<<18)
	l.rand = rand.New(rand.NewPCG(rand.Uint64(), 0))
	to, from := newWire(l, x), newWire(l, y)
	return &awareConn{Conn: x, in: from, out: to}, &awareConn{Conn: y, in: to, out: from}
}

func newWire(l link, c *testrig.Conn) *wire {
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
			part := b[:min(len(b), w.link.emss)]
			b = b[len(part):]
			if w.link.recut && len(part) > 1 && w.link.rand.IntN(4) == 0 {
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
	return w.link.emss
}

func (w *wire) setEMSS(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.link.emss = n
}

func (w *wire) put(b []byte) {
	if w.sniff != nil {
		w.sniff(b)
	}
	w.sent += uint64(len(b))
	if w.link.recut && w.link.rand.IntN(4) == 0 && w.join(b) {
		return
	}
	w.onWay = append(w.onWay, segment{w.sent - uint64(len(b)), bytes.Clone(b)})
}

// join puts octets at the end of the segment before them, if that is still on its way.
func (w *wire) join(b []byte) bool {
	if len(w.onWay) == 0 {
		return false
	}
	last := &w.onWay[len(w.onWay)-1]
	if last.at+uint64(len(last.b)+len(b)) != w.sent || len(last.b) > 4*w.link.emss { // it has arrived, or is full
		return false
	}
	last.b = append(last.b, b...)
	if w.link.joined != nil {
		w.link.joined.Add(1)
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
		i := w.link.rand.IntN(min(len(w.onWay), 1+w.link.disorder))
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
func (w *wire) arrive(s segment) {
	if s.at > w.next {
		w.ahead[s.at] = s.b
		w.showAhead(s)
		return
	}
	for b := s.b; b != nil; b = w.ahead[w.next] {
		delete(w.ahead, w.next)
		w.next += uint64(len(b))
		_, _ = w.order.Write(b)
	}
}

func (w *wire) showAhead(s segment) {
	w.showing.Lock()
	defer w.showing.Unlock()
	if w.show != nil && s.at >= w.base {
		b := bytes.Clone(s.b)
		w.show(s.at-w.base, b)
		clear(b) // nobody may keep it
	}
}

func (c *awareConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read += uint64(n)
	return n, err
}

func (c *awareConn) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = c.out.write([][]byte{b[n:min(n+c.out.emss(), len(b))]})
		n += m
	}
	return n, err
}

func (c *awareConn) WriteFPDUs(fpdus [][]byte) (int, error) { return c.out.write(fpdus) }
func (c *awareConn) EMSS() int                              { return c.out.emss() }

func (c *awareConn) ShowAhead(f func(at uint64, octets []byte)) {
	c.in.showing.Lock()
	defer c.in.showing.Unlock()
	c.in.show, c.in.base = f, c.read
}

func (c *awareConn) CloseWrite() error {
	c.out.end(func() { c.out.fin = true })
	return nil
}

// Close is TCP's: what was written still arrives.
func (c *awareConn) Close() error {
	c.out.end(func() { c.out.fin, c.out.all = true, true })
	return nil
}

// Reset ends both directions at once.
func (c *awareConn) Reset() error {
	_ = c.SetLinger(0)
	err := c.Conn.Close()
	c.out.end(func() { c.out.lost = true })
	c.in.end(func() { c.in.lost = true })
	return err
}

func (w *wire) end(how func()) {
	w.mu.Lock()
	how()
	w.changed.Broadcast()
	w.mu.Unlock()
}

// An awareStack is an MPA-aware TCP in memory.
type awareStack struct {
	link  link
	peers chan net.Conn
	name  testAddr
	once  sync.Once
	done  chan struct{}
}

func newAwareStack(l link) *awareStack {
	return &awareStack{link: l, peers: make(chan net.Conn), name: "stack", done: make(chan struct{})}
}

func (s *awareStack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" || address != string(s.name) {
		return nil, fmt.Errorf("dial %s %s", network, address)
	}
	a, b := awarePair(s.link)
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
func (s *awareStack) Addr() net.Addr                                               { return s.name }

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
func (s *setup) awarely(l link) {
	stack := newAwareStack(l)
	s.Stack, s.listen.Stack = stack, stack
	s.MPA.Markers, s.accept.MPA.Markers = true, true
}
