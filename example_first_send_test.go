package iwarp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// A server that answers questions, the way one is written with sockets: accept, receive, answer, until the client closes.
func Example_firstSend() {
	ctx := context.Background()
	cfg := iwarp.QPConfig{Receives: iwarp.Receives{Count: 16, Size: 256}}
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		check(err)
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{QP: cfg})
		check(err)
		defer qp.Close()
		for question, err := range qp.Messages(ctx) {
			check(err)
			answer := fmt.Appendf(nil, "What is %s", question.Bytes())
			_, err := qp.Submit(ctx, &iwarp.SendWR{Inline: answer})
			check(err)
		}
	}()

	d := iwarp.Dialer{QP: cfg}
	qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
	check(err)
	defer qp.Close()
	_, err = qp.Submit(ctx, &iwarp.SendWR{Inline: []byte("RDMA?")})
	check(err)
	answer, err := qp.Receive(ctx)
	check(err)
	fmt.Printf("%s\n", answer.Bytes())
	answer.Done()
	// Output: What is RDMA?
}

// A server offers memory by the private data of its answer. The client reads it whenever it likes, and the server's program
// does nothing for that.
func Example_oneSided() {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		pd, err := ln.RNIC().AllocPD()
		if err != nil {
			log.Fatal(err)
		}
		news, err := pd.Register([]byte("all is well"), iwarp.RemoteRead)
		if err != nil {
			log.Fatal(err)
		}
		where, err := news.Region().MarshalBinary()
		if err != nil {
			log.Fatal(err)
		}
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		_, err = req.Accept(ctx, iwarp.AcceptConfig{PD: pd, MPA: mpa.Answer{PrivateData: where}})
		if err != nil {
			log.Fatal(err)
		}
	}()

	qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer qp.Close()
	var where iwarp.Region
	if err := where.UnmarshalBinary(qp.Negotiated().PrivateData); err != nil {
		log.Fatal(err)
	}
	news := qp.At(ctx, where)
	page := make([]byte, news.Len())
	if _, err := news.ReadAt(page, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", page)
	// Output: all is well
}
