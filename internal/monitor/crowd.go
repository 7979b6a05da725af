package monitor

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// most is how many connections there may be. One more takes the place of another.
const most = 64

// A crowd is a Listener whose connections are no more than most: whoever is slow, or says nothing, keeps nobody out,
// and leaves descriptors for others.
type crowd struct {
	net.Listener

	mu    sync.Mutex
	whole map[*visitor]time.Time // when its last whole request came; or the connection, if there was none
}

func newCrowd(ln net.Listener) *crowd {
	return &crowd{Listener: ln, whole: make(map[*visitor]time.Time)}
}

// A visitor is one of its connections.
type visitor struct {
	net.Conn
	in *crowd
}

// Accept takes a connection in. If there are too many, the one that is longest without a whole request ends.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{conn, c}
	if last := c.enter(v); last != nil {
		_ = last.Close()
	}
	return v, nil
}

// enter returns who has to leave, if somebody has.
func (c *crowd) enter(v *visitor) (last *visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.whole) >= most {
		for other, at := range c.whole {
			if last == nil || at.Before(c.whole[last]) {
				last = other
			}
		}
		delete(c.whole, last)
	}
	c.whole[v] = time.Now()
	return last
}

// Close gives the place back.
func (v *visitor) Close() error {
	v.in.mu.Lock()
	delete(v.in.whole, v)
	v.in.mu.Unlock()
	return v.Conn.Close()
}

// asked notes that a whole request has come.
func (v *visitor) asked() {
	v.in.mu.Lock()
	defer v.in.mu.Unlock()
	if _, here := v.in.whole[v]; here {
		v.in.whole[v] = time.Now()
	}
}

// A visit is the key of a request's visitor.
type visit struct{}

// know has the requests of a connection know whose they are.
func know(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visit{}, conn)
}

// noting notes the requests that come. They have no body, so that they are whole.
func noting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visit{}).(*visitor); ok {
			v.asked()
		}
		h.ServeHTTP(w, r)
	})
}
