// Package refuse rejects connections in such a way that peers get the reason.
package refuse

import (
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
)

// wait is how long a rejected peer has to close first.
const wait = time.Second

// Politely rejects a request, with a reason as private data where there is room for that, and leaves it to the peer to close: Linux's siw
// now and then loses the private data of a Reply after which the stream ends. It returns when that is done, a second later at most. The
// error says why the peer was not told the reason: it was rejected without one then, or its connection is closed.
func Politely(req *iwarp.Request, reason string) error {
	conn, err := req.Reject([]byte(reason))
	if err != nil {
		return errors.Join(err, silently(req))
	}
	defer conn.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = conn.Read(make([]byte, 1)) // nothing comes but the end
	}()
	select {
	case <-ended:
	case <-time.After(wait):
	}
	return nil
}

// silently rejects a request for which there is no room for a reason, or ends its connection: a peer that hears nothing would wait.
func silently(req *iwarp.Request) error {
	conn, err := req.Reject(nil)
	if err != nil {
		return errors.Join(err, req.Close())
	}
	return conn.Close()
}
