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
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{QP: iwarp.QPConfig{Receives: iwarp.Receives{Size: 256}}})
		if err != nil {
			log.Fatal(err)
		}
		defer qp.Close()
		for question, err := range qp.Messages(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			answer := fmt.Appendf(nil, "What is %s", question.Bytes())
			if err := qp.PostSend(&iwarp.SendWR{Inline: answer, Unsignaled: true}); err != nil {
				log.Fatal(err)
			}
		}
	}()

	d := iwarp.Dialer{QP: iwarp.QPConfig{Receives: iwarp.Receives{Size: 256}}}
	qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer qp.Close()
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("RDMA?"), Unsignaled: true}); err != nil {
		log.Fatal(err)
	}
	answer, err := qp.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", answer.Bytes())
	answer.Done()
	// Output: What is RDMA?
}

// A server offers memory by the private data of its answer. The client reads it whenever it likes, and the server's program
// does nothing for that.
func Example_oneSided() {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
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
		where, _ := news.Remote(0).MarshalBinary()
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
	var news iwarp.Remote
	if err := news.UnmarshalBinary(qp.Negotiated().PrivateData); err != nil {
		log.Fatal(err)
	}
	page, err := qp.PD().Register(make([]byte, 11), iwarp.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := qp.Read(ctx, page.Slice(0, 11), news); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", page.Bytes())
	// Output: all is well
}
