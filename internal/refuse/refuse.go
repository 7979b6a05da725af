// Package refuse rejects connections, by one rule for all servers, so that peers hear the reason.
package refuse

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	patience = time.Second // how long a rejected peer has to close first
	most     = 64          // of the peers that a Door waits for at a time
)

// A Door is where a server rejects requests. The zero value is usable.
type Door struct{ waiting atomic.Int32 }

// Refuse rejects a request with private data, and leaves it to the peer to close: Linux's siw now and then loses the private data of a Reply
// after which the stream ends. It returns when the peer has closed, a second later at most; at once where there are no private data to lose, or
// while 64 other peers are waited for. The error says why the peer did not get the private data: it was rejected without them then, or
// its connection is closed.
func (d *Door) Refuse(req *iwarp.Request, privateData []byte) error {
	wait, err := d.Begin(req, privateData)
	if err == nil {
		wait()
	}
	return err
}

// Begin is Refuse for a caller who must not wait: wait does that, and closes the connection.
func (d *Door) Begin(req *iwarp.Request, privateData []byte) (wait func(), err error) {
	conn, err := req.Reject(privateData)
	if err != nil {
		silently(req)
		return nil, err
	}
	return func() {
		defer conn.Close()
		defer d.waiting.Add(-1)
		if d.waiting.Add(1) <= most && len(privateData) > 0 {
			awaitEnd(conn)
		}
	}, nil
}

// awaitEnd waits until the peer has closed, or has had the time to.
func awaitEnd(conn net.Conn) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = conn.Read(make([]byte, 1)) // nothing comes but the end
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
}

// silently rejects a request for whose private data there is no room, or ends its connection: a peer that hears nothing would wait.
func silently(req *iwarp.Request) {
	conn, err := req.Reject(nil)
	if err != nil {
		_ = req.Close()
		return
	}
	_ = conn.Close()
}

// An Error is that of a server that has not served a peer, but rejected it.
type Error struct {
	Why    error
	Untold error // why the peer does not know Why; nil if it does
}

// Because is Refuse for why. The error is an *Error.
func (d *Door) Because(req *iwarp.Request, privateData []byte, why error) error {
	return &Error{why, d.Refuse(req, privateData)}
}

// Error says why.
func (e *Error) Error() string {
	if e.Untold == nil {
		return e.Why.Error()
	}
	return e.Why.Error() + "; the peer was not told: " + e.Untold.Error()
}

// Unwrap returns both.
func (e *Error) Unwrap() []error {
	if e.Untold == nil {
		return []error{e.Why}
	}
	return []error{e.Why, e.Untold}
}
