package credits_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/credits"
)

// ask sends questions, of which 16 may be without an answer, and takes the answers.
func ask(ctx context.Context, qp *iwarp.QP, questions int) (answers int, err error) {
	c := credits.New(qp, 16) // the peer has posted 16 receives for us
	sending := make(chan error, 1)
	go func() { sending <- sendAll(ctx, qp, c, questions) }()
	for answers < questions {
		m, err := qp.Receive(ctx)
		if err != nil {
			return answers, err
		}
		m.Done()
		answers++
		if err := c.Give(1); err != nil { // for each answer
			return answers, err
		}
	}
	return answers, <-sending
}

func sendAll(ctx context.Context, qp *iwarp.QP, c *credits.Credits, questions int) error {
	for range questions {
		if err := c.Take(ctx); err != nil { // before each message
			return err
		}
		if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("what?"), Unsignaled: true}); err != nil {
			return err
		}
	}
	return nil
}

// answer answers each message. Its receive is posted again before that.
func answer(ctx context.Context, qp *iwarp.QP) error {
	for {
		m, err := qp.Receive(ctx)
		if err != nil {
			return err
		}
		m.Done()
		if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("that"), Unsignaled: true}); err != nil {
			return err
		}
	}
}

func Example() {
	ctx := context.Background()
	receiving := iwarp.QPConfig{Receives: iwarp.Receives{Count: 16, Size: 64}}
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			return
		}
		if qp, err := req.Accept(ctx, iwarp.AcceptConfig{QP: receiving}); err == nil {
			_ = answer(ctx, qp)
			_ = qp.Close()
		}
	}()
	d := iwarp.Dialer{QP: receiving}
	qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	answers, err := ask(ctx, qp, 100)
	fmt.Println(answers, err, qp.Close())
	// Output: 100 <nil> <nil>
}
