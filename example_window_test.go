package iwarp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
)

// A server lends a client a part of its memory, by a window that the client gives back when it has
// written: nothing but that part was ever open to it.
func ExampleMW() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	mr, err := server.PD().Register(make([]byte, 4096), iwarp.LocalWrite) // no remote right
	if err != nil {
		log.Fatal(err)
	}
	window, err := server.PD().AllocMW(iwarp.MWType2)
	if err != nil {
		log.Fatal(err)
	}
	err = server.PostSend(&iwarp.SendWR{Op: iwarp.OpBindMW, Window: window,
		Bind: &iwarp.Binding{Memory: mr.Slice(1024, 64), Access: iwarp.RemoteWrite, Key: 1}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := server.SendCQ().Next(ctx); err != nil { // it is bound
		log.Fatal(err)
	}
	if err := server.PostRecv(&iwarp.RecvWR{}); err != nil {
		log.Fatal(err)
	}

	lent := window.Remote(0) // a message tells the client
	err = client.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("written"), Remote: lent})
	if err == nil {
		err = client.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Invalidate: lent.STag})
	}
	if err != nil {
		log.Fatal(err)
	}

	wc, err := server.RecvCQ().Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("given back:", wc.Invalidated == lent.STag, window.Valid())
	fmt.Printf("%s\n", mr.Bytes()[1024:1031])
	// Output:
	// given back: true false
	// written
}

// A client registers what a request needs together with the request, and the server's answer ends
// the registration: one MR serves for one request after the other.
func ExamplePD_AllocMR() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	mr, err := client.PD().AllocMR(2, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	head, body := make([]byte, 6), make([]byte, 5)
	for key := range uint8(2) {
		err := client.PostSend(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr, Unsignaled: true,
			Register: &iwarp.Registration{Memory: [][]byte{head, body}, Access: iwarp.RemoteWrite, Key: key, Private: true}})
		if err == nil {
			err = client.PostRecv(&iwarp.RecvWR{})
		}
		if err == nil {
			err = server.PostRecv(&iwarp.RecvWR{})
		}
		if err == nil { // the request, which tells the server of mr.STagWithKey(key)
			err = client.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
		}
		if err == nil {
			err = answer(ctx, server, iwarp.Remote{STag: mr.STagWithKey(key)})
		}
		if err != nil {
			log.Fatal(err)
		}
		if _, err := client.RecvCQ().Next(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s%s, valid: %t\n", head, body, mr.Valid())
	}
	// Output:
	// hello world, valid: false
	// hello world, valid: false
}

// answer waits for a request, and answers it by a Write and a Send that ends the registration.
func answer(ctx context.Context, server *iwarp.QP, to iwarp.Remote) error {
	if _, err := server.RecvCQ().Next(ctx); err != nil {
		return err
	}
	err := server.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("hello world"), Remote: to, Unsignaled: true})
	if err != nil {
		return err
	}
	return server.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Invalidate: to.STag, Unsignaled: true})
}
