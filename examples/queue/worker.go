package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// work takes jobs of a boss, so many at a time, until there are no more: then the boss closes the connection. A result is cut to
// what a message has room for.
func work(ctx context.Context, addr string, atATime int, do func(job string) (result string)) error {
	var m mailbox
	d := iwarp.Dialer{
		MPA:     mpa.Offer{PrivateData: []byte{byte(atATime)}},
		Prepare: func(qp *iwarp.QP) error { return m.open(qp, atATime) },
	}
	qp, err := d.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer qp.Close()
	var busy sync.WaitGroup
	var sending sync.Mutex // next is called by this goroutine alone, send by several
	defer busy.Wait()
	for {
		job, text, err := m.next(ctx, nil)
		switch {
		case errors.Is(err, iwarp.ErrPeerClosed):
			return nil
		case err != nil:
			return err
		}
		busy.Go(func() {
			result := do(text)
			result = result[:min(len(result), textLen)]
			sending.Lock()
			defer sending.Unlock()
			_ = m.send(message(job, result)) // if it fails the connection has ended, as next will say
		})
	}
}

// digest is the job of this program.
func digest(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
