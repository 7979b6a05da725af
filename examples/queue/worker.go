package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// work takes jobs of a boss, so many at a time, until there are no more: then the boss closes the connection. A result is cut to
// what a message has room for.
func work(ctx context.Context, addr string, atATime int, do func(job string) (result string)) error {
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte{byte(atATime)}}, QP: receiving(atATime)}
	qp, err := d.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer qp.Close()
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		job, text, err := receive(ctx, qp)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		busy.Go(func() {
			result := do(text)
			_ = send(qp, job, result[:min(len(result), textLen)]) // if it fails, the connection has ended
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
