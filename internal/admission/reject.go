package admission

import (
	"net"
	"sync/atomic"
	"time"
)

const (
	patience   = time.Second // how long a rejected peer has to close first
	maxWaiting = 64          // of the peers that a Rejecter waits for at a time
)

// A Request is a peer's request for a connection, as package iwarp has it.
type Request interface {
	Reject(privateData []byte) (net.Conn, error)
	Close() error
}

// A Rejecter is where a server rejects requests, so that peers hear the reason. The zero value is usable.
type Rejecter struct{ waiting atomic.Int32 }

// RejectAndWait rejects a request with private data, and leaves it to the peer to close: Linux's siw now and then loses
// the private data of a Reply after which the stream ends. It returns when the peer has closed, a second later at most;
// at once where there are no private data to lose, or while 64 other peers are waited for. The error says why the peer
// did not get the private data: it was rejected without them then, or its connection is closed.
func (r *Rejecter) RejectAndWait(req Request, privateData []byte) error {
	wait, err := r.BeginReject(req, privateData)
	if err == nil {
		wait()
	}
	return err
}

// BeginReject is RejectAndWait for a caller who must not wait: wait does that, and closes the connection.
func (r *Rejecter) BeginReject(req Request, privateData []byte) (wait func(), err error) {
	conn, err := req.Reject(privateData)
	if err != nil {
		rejectSilently(req)
		return nil, err
	}
	return func() {
		defer conn.Close()
		defer r.waiting.Add(-1)
		if r.waiting.Add(1) <= maxWaiting && len(privateData) > 0 {
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

// rejectSilently rejects a request without private data, for which there was no room. If even that fails it ends the
// connection, as a peer that hears nothing would wait.
func rejectSilently(req Request) {
	conn, err := req.Reject(nil)
	if err != nil {
		_ = req.Close()
		return
	}
	_ = conn.Close()
}

// A RejectedError says why a server has rejected a peer.
type RejectedError struct {
	Why    error
	Untold error // why the peer does not know Why; nil if it does
}

// RejectBecause is RejectAndWait for a reason. The error is a *RejectedError.
func (r *Rejecter) RejectBecause(req Request, privateData []byte, why error) error {
	return &RejectedError{why, r.RejectAndWait(req, privateData)}
}

// Error says why, and if the peer does not know, why not.
func (e *RejectedError) Error() string {
	if e.Untold == nil {
		return e.Why.Error()
	}
	return e.Why.Error() + "; the peer was not told: " + e.Untold.Error()
}

// Unwrap returns Why, and Untold if there is one.
func (e *RejectedError) Unwrap() []error {
	if e.Untold == nil {
		return []error{e.Why}
	}
	return []error{e.Why, e.Untold}
}
