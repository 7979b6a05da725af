package iwarp_test

import (
	"context"
	"errors"
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
		var box letterbox
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{Prepare: box.prepare})
		if err != nil {
			log.Fatal(err)
		}
		defer qp.Close()
		for {
			question, err := box.next(ctx)
			if errors.Is(err, iwarp.ErrPeerClosed) {
				return
			}
			if err != nil {
				log.Fatal(err)
			}
			err = qp.PostSend(&iwarp.SendWR{Inline: []byte("What is " + question), Unsignaled: true})
			if err != nil {
				log.Fatal(err)
			}
		}
	}()

	var box letterbox
	d := iwarp.Dialer{Prepare: box.prepare}
	qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer qp.Close()
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("RDMA?"), Unsignaled: true}); err != nil {
		log.Fatal(err)
	}
	answer, err := box.next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	// Output: What is RDMA?
}

// A letterbox has the receives of one end, and the memory for them.
type letterbox struct {
	qp     *iwarp.QP
	memory *iwarp.MR
}

const (
	letters   = 4   // that may arrive before one was taken out
	letterLen = 256 // octets, at most
)

func (b *letterbox) prepare(qp *iwarp.QP) (err error) {
	b.qp = qp
	b.memory, err = qp.PD().Register(make([]byte, letters*letterLen), iwarp.LocalWrite)
	for i := range letters {
		if err == nil {
			err = b.post(i)
		}
	}
	return err
}

func (b *letterbox) post(i int) error {
	return b.qp.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{b.memory.Slice(i*letterLen, letterLen)}})
}

func (b *letterbox) next(ctx context.Context) (string, error) {
	wc, err := b.qp.RecvCQ().Next(ctx)
	if err != nil {
		return "", err
	}
	if err := wc.Err(); err != nil {
		return "", err
	}
	i := int(wc.ID)
	text := string(b.memory.Bytes()[i*letterLen:][:wc.Length])
	_ = b.post(i) // when the peer has closed, this fails; next tells of that when all its letters are taken out
	return text, nil
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
