package admission

import "sync/atomic"

// A Request is a peer's request for a connection, as package iwarp has it.
type Request interface {
	Reject(privateData []byte) error
	Dismissed() <-chan struct{}
	Close() error
}

// A Rejecter is where a server rejects requests, so that peers hear the reason. The zero value is usable.
type Rejecter struct{ waiting atomic.Int32 }

// RejectAndWait rejects a request with private data, and returns when the peer has closed, 5 s later at most, or the
// RNIC was closed: the program may end then. It does not wait where there are no private data to lose, or while 64 other peers are waited
// for. The error says why the peer did not get the private data: it was rejected without them then, or its connection
// is closed.
func (r *Rejecter) RejectAndWait(req Request, privateData []byte) error {
	wait, err := r.BeginReject(req, privateData)
	if err == nil {
		wait()
	}
	return err
}

// BeginReject is RejectAndWait for a caller who must not wait: wait does that.
func (r *Rejecter) BeginReject(req Request, privateData []byte) (wait func(), err error) {
	waits := r.waiting.Add(1) <= maxWaiting && len(privateData) > 0
	leave := func() { r.waiting.Add(-1) }
	switch err = req.Reject(privateData); {
	case err != nil:
		leave()
		rejectSilently(req)
		return nil, err
	case !waits:
		return leave, nil
	}
	return func() {
		defer leave()
		<-req.Dismissed()
	}, nil
}

// rejectSilently rejects a request without private data, for which there was no room. If even that fails it ends the
// connection, as a peer that hears nothing would wait.
func rejectSilently(req Request) {
	if req.Reject(nil) != nil {
		_ = req.Close()
	}
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
