package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/goiwarp/iwarp"
)

// A speaker is an end of a connection on which short messages go to and fro.
type speaker struct {
	qp      *iwarp.QP
	inboxes *iwarp.MR
}

const (
	inboxLen = 64
	inboxes  = 4 // messages that the peer may send before one was taken
)

// prepare posts the receives, before the connection comes up.
func (t *speaker) prepare(qp *iwarp.QP) (err error) {
	t.qp = qp
	if t.inboxes, err = qp.PD().Register(make([]byte, inboxes*inboxLen), iwarp.LocalWrite); err != nil {
		return err
	}
	for i := range inboxes {
		err = errors.Join(err, t.post(uint64(i)))
	}
	return err
}

func (t *speaker) post(inbox uint64) error {
	return t.qp.PostRecv(&iwarp.RecvWR{ID: inbox, SGL: []iwarp.SGE{t.inboxes.Slice(int(inbox)*inboxLen, inboxLen)}})
}

func (t *speaker) say(text string) error {
	return t.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte(text)})
}

// hear returns the next message.
func (t *speaker) hear(ctx context.Context) (string, error) {
	wc, err := t.qp.RecvCQ().Next(ctx)
	if err == nil {
		err = wc.Err()
	}
	if err != nil {
		return "", err
	}
	if wc.Op != iwarp.OpRecv { // what was said has left
		return t.hear(ctx)
	}
	at := int(wc.ID) * inboxLen
	text := string(t.inboxes.Bytes()[at : at+wc.Length])
	_ = t.post(wc.ID) // where that fails, the next call tells why
	return text, nil
}

// serve answers until the client has nothing more to ask, and closes then.
func (t *speaker) serve(ctx context.Context) {
	for {
		text, err := t.hear(ctx)
		switch {
		case err != nil:
			log.Fatal(err)
		case text == "bye": // 3. Whoever has received the last message closes.
			_ = t.qp.Close()
			return
		}
		_ = t.say("answer to " + text)
	}
}

// A server that must go loses no request and no answer: it says so, the client asks what it still has to ask and says goodbye, and
// only then the connection is closed. docs/endings.md has the steps.
func Example_shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	var server, client speaker
	served := make(chan struct{})
	go func() {
		defer close(served)
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := req.Accept(ctx, iwarp.AcceptConfig{Prepare: server.prepare}); err != nil {
			log.Fatal(err)
		}
		server.serve(ctx)
	}()

	d := iwarp.Dialer{Prepare: client.prepare}
	if _, err := d.Dial(ctx, "tcp", ln.Addr().String()); err != nil {
		log.Fatal(err)
	}
	defer client.qp.Close()
	_ = client.say("question 1")
	fmt.Println(client.hear(ctx))

	_ = ln.Close()            // nobody else may come
	_ = server.say("leaving") // 1. The end that wants to leave says so.
	fmt.Println(client.hear(ctx))
	_ = client.say("question 2") // 2. The other end finishes what it has to ask,
	fmt.Println(client.hear(ctx))
	_ = client.say("bye") // and says that this was the last.

	<-client.qp.Done()
	fmt.Println("the client sees", client.qp.Err())
	<-served
	fmt.Println("shut down:", ln.Shutdown(ctx)) // clients that would not leave are closed now
	// Output:
	// answer to question 1 <nil>
	// leaving <nil>
	// answer to question 2 <nil>
	// the client sees iwarp: the peer closed the connection in order
	// shut down: <nil>
}
