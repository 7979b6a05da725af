package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/goiwarp/iwarp"
)

// A server with one Shared Receive Queue for all clients: their messages take the receives in the order in which they
// arrive, and the completion tells whose message it is.
func ExamplePD_CreateSRQ() {
	ctx := context.Background()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	check(err)
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 8, PerQP: 4}) // no client can take more than half of it
	check(err)
	memory, err := pd.Register(make([]byte, 8*64), iwarp.LocalWrite)
	check(err)
	post := func(i uint64) {
		check(srq.PostRecv(&iwarp.RecvWR{ID: i, SGL: []iwarp.SGE{memory.Slice(int(i)*64, 64)}}))
	}
	for i := range uint64(8) {
		post(i)
	}
	cq, err := rnic.CreateCQ(8)
	check(err)
	ln, err := (&iwarp.ListenConfig{PD: pd}).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)

	for _, name := range []string{"Ada", "Grace"} {
		go func() {
			qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
			check(err)
			check(qp.PostSend(&iwarp.SendWR{Inline: []byte("I am " + name)}))
			_ = qp.Close()
		}()
		req, err := ln.Accept(ctx)
		check(err)
		_, err = req.Accept(ctx, iwarp.AcceptConfig{QP: iwarp.QPConfig{SRQ: srq, RecvCQ: cq, UserData: name}})
		check(err)
		wc, err := cq.Next(ctx)
		check(err)
		check(wc.Err())
		fmt.Printf("%s: %s\n", wc.QP.UserData(), memory.Bytes()[wc.ID*64:][:wc.Length])
		post(wc.ID) // for whoever comes next
	}
	fmt.Println(srq.Query().Receives, "receives are left")
	// Output:
	// Ada: I am Ada
	// Grace: I am Grace
	// 8 receives are left
}

// A program that waits for completions together with other things: it polls, arms, and polls once more before it waits, as a
// completion that came before Arm causes no notice.
func ExampleCQ_Arm() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	check(err)
	defer client.Close()
	defer server.Close()
	for range 3 {
		check(server.PostRecv(&iwarp.RecvWR{}))
	}
	go func() {
		for i := range uint64(3) {
			check(client.PostSend(&iwarp.SendWR{Op: iwarp.OpImmediate, Immediate: i + 1, Unsignaled: true}))
		}
	}()

	cq := server.RecvCQ()
	var wc [8]iwarp.WC
	for sum := uint64(0); sum < 1+2+3; {
		cq.Arm(false)
		n := cq.Poll(wc[:])
		for _, c := range wc[:n] {
			check(c.Err())
			sum += c.Immediate
			fmt.Println("got", c.Immediate)
		}
		if n > 0 {
			continue // there may be more
		}
		select {
		case <-cq.Events():
		case <-ctx.Done(): // or a timer, or whatever else the program waits for
			return
		}
	}
	// Output:
	// got 1
	// got 2
	// got 3
}

// A loop over completions gets the error of each request, and that of the wait.
func ExampleCQ_All() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	check(err)
	defer client.Close()
	defer server.Close()
	page, err := server.PD().Register(make([]byte, 3), iwarp.RemoteWrite)
	check(err)
	for i := range 3 {
		check(client.PostSend(&iwarp.SendWR{
			ID: uint64(i + 1), Op: iwarp.OpWrite, Inline: []byte{'a' + byte(i)}, Remote: page.Remote(i),
		}))
	}

	for wc, err := range client.SendCQ().All(ctx) {
		if errors.Is(err, io.EOF) {
			break // the peer has closed in order
		}
		check(err)
		fmt.Println("request", wc.ID, "is complete")
		if wc.ID == 3 {
			break
		}
	}
	// Output:
	// request 1 is complete
	// request 2 is complete
	// request 3 is complete
}

// A Write and the message that tells of it are posted in one call, and leave together. Only the last is signaled: when it is
// complete, so are all in front of it.
func ExampleQP_PostSends() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	check(err)
	defer client.Close()
	defer server.Close()
	page, err := server.PD().Register(make([]byte, 32), iwarp.RemoteWrite)
	check(err)
	check(server.PostRecv(&iwarp.RecvWR{}))

	n, err := client.PostSends([]iwarp.SendWR{
		{Op: iwarp.OpWrite, Inline: []byte("both halves, "), Remote: page.Remote(0), Unsignaled: true},
		{Op: iwarp.OpWrite, Inline: []byte("and then a message"), Remote: page.Remote(13), Unsignaled: true},
		{ID: 3, Op: iwarp.OpSend},
	})
	if err != nil {
		log.Fatalf("request %d was not posted: %v", n, err)
	}
	wc, err := client.SendCQ().Next(ctx)
	check(err)      // of the wait
	check(wc.Err()) // of the request
	fmt.Println("request", wc.ID, "is complete")

	wc, err = server.RecvCQ().Next(ctx) // what was written before the message is there
	check(err)
	check(wc.Err())
	fmt.Printf("%s\n", page.Bytes()[:31])
	// Output:
	// request 3 is complete
	// both halves, and then a message
}

// What happens to connections, and is the outcome of no request, comes as events: a server learns so of peers that go.
func ExampleRNIC_NextEvent() {
	ctx := context.Background()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	go func() {
		qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
		check(err)
		// Nobody has offered this memory: the server finds that out, and tells us by a Terminate.
		check(qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("?"), Remote: iwarp.Remote{STag: 0x1234}}))
		<-qp.Done()
		_ = qp.Close()
	}()
	req, err := ln.Accept(ctx)
	check(err)
	_, err = req.Accept(ctx, iwarp.AcceptConfig{})
	check(err)

	for {
		event, err := rnic.NextEvent(ctx)
		check(err)
		fmt.Println(event.Kind)
		if event.Kind == iwarp.EventTerminateSent {
			check(event.QP.Abort()) // nothing more comes of it
			return
		}
	}
	// Output:
	// communication established
	// Terminate sent
}

// A server that is told to go: no more clients come, what is under way on the connections ends, and they are closed in order.
// Example_shutdown shows how a server and its clients agree that they are done.
func ExampleRNIC_Shutdown() {
	ctx := context.Background()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	ended := make(chan error)
	go func() {
		qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
		check(err)
		<-qp.Done()
		ended <- qp.Err()
		_ = qp.Close()
	}()
	req, err := ln.Accept(ctx)
	check(err)
	_, err = req.Accept(ctx, iwarp.AcceptConfig{})
	check(err)

	fmt.Println("shut down:", rnic.Shutdown(ctx)) // with a deadline, if peers may be slow
	fmt.Println("the client:", <-ended)
	// Output:
	// shut down: <nil>
	// the client: iwarp: the peer closed the connection in order
}

// The program changes memory that peers read, and none of them sees a change half done.
func ExampleMR_Update() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	check(err)
	defer client.Close()
	defer server.Close()
	account, err := server.PD().Register([]byte("red 10, blue 90"), iwarp.RemoteRead)
	check(err)
	check(account.Update(func(memory []byte) {
		copy(memory[4:], "50")
		copy(memory[13:], "50")
	}))

	mine, err := client.PD().Register(make([]byte, account.Len()), iwarp.LocalWrite)
	check(err)
	_, err = client.Read(ctx, mine.Slice(0, mine.Len()), account.Remote(0))
	check(err)
	fmt.Printf("%s\n", mine.Bytes())
	// Output: red 50, blue 50
}
