package iwarp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A Write has no completion at its sink, which waits for its last byte: ReadAt sees that when all of the Write is there,
// whatever its length.
func ExampleMR_ReadAt() {
	ctx := context.Background()
	ini, res, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer ini.Close()
	defer res.Close()
	text := []byte("seventeen bytes!!")
	mr, err := res.PD().Register(make([]byte, len(text)), iwarp.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	err = ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: text, Remote: mr.Remote(0)})
	if err != nil {
		log.Fatal(err)
	}
	var flag [1]byte
	for flag[0] == 0 {
		if _, err := mr.ReadAt(flag[:], int64(len(text)-1)); err != nil {
			log.Fatal(err)
		}
		runtime.Gosched()
	}
	got := make([]byte, len(text))
	if _, err := mr.ReadAt(got, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", got)
	// Output: seventeen bytes!!
}

// The same with an atomic load, which costs nothing while there is nothing: of the last eight bytes of the Write, which end
// at a multiple of eight. Over SCTP there is no such promise.
func ExampleMR_Bytes() {
	ctx := context.Background()
	ini, res, err := examplePair(ctx)
	check(err)
	defer ini.Close()
	defer res.Close()
	const n = 24
	mr, err := res.PD().Register(make([]byte, n), iwarp.RemoteWrite)
	check(err)
	record := append([]byte("sixteen bytes in"), 1, 1, 1, 1, 1, 1, 1, 1)
	check(ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: record, Remote: mr.Remote(0)}))

	flag := (*uint64)(unsafe.Pointer(&mr.Bytes()[n-8])) // the last 8 of n bytes; n is a multiple of 8
	for atomic.LoadUint64(flag) == 0 {
		runtime.Gosched()
	}
	fmt.Printf("%s\n", mr.Bytes()[:16])
	// Output: sixteen bytes in
}

// examplePair connects two QPs in one process.
func examplePair(ctx context.Context) (ini, res *iwarp.QP, err error) {
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	accepted := make(chan error, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			res, err = req.Accept(ctx, iwarp.AcceptConfig{})
		}
		accepted <- err
	}()
	if ini, err = iwarp.Dial(ctx, "tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	return ini, res, <-accepted
}

// A counter that peers and the program share: each gets a number of its own.
func ExampleQP_FetchAdd() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	mr, err := server.PD().Register(make([]byte, iwarp.AtomicLen), iwarp.RemoteAtomic)
	if err != nil {
		log.Fatal(err)
	}
	counter, err := mr.Uint64(0)
	if err != nil {
		log.Fatal(err)
	}
	drawn, err := counter.Add(1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the server draws", drawn)
	before, err := client.FetchAdd(ctx, mr.Remote(0), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the client draws", before+1)
	// Output:
	// the server draws 1
	// the client draws 2
}

// What io has for files reads and writes the peer's memory, and stays within it.
func ExampleQP_At() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	mr, err := server.PD().Register([]byte("one two three"), iwarp.RemoteRead|iwarp.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	there := client.At(ctx, mr.Region()) // which the client knows from private data, or a message
	if _, err := there.WriteAt([]byte("2  "), 4); err != nil {
		log.Fatal(err)
	}
	if err := there.Flush(ctx); err != nil { // and the server has it
		log.Fatal(err)
	}
	words, err := io.ReadAll(io.NewSectionReader(there, 4, there.Size()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", words)
	_, err = there.WriteAt([]byte("four"), 10)
	fmt.Println(err)
	// Output:
	// 2   three
	// iwarp: write: invalid argument: 4 bytes at offset 10 of a Region of 13
}

// A Write that tells its peer: the receive has the Immediate Data, and shows that the Write is there.
func ExampleQP_WriteImm() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	slots, err := server.PD().Register(make([]byte, 64), iwarp.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	if err := server.PostRecv(&iwarp.RecvWR{}); err != nil { // it needs no memory
		log.Fatal(err)
	}
	text, err := client.PD().Register([]byte("written"), 0)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.WriteImm(ctx, text.Slice(0, text.Len()), slots.Remote(32), 32); err != nil {
		log.Fatal(err)
	}
	wc, err := server.RecvCQ().Next(ctx)
	if err == nil {
		err = wc.Err()
	}
	if err != nil {
		log.Fatal(err)
	}
	got := make([]byte, wc.Written)
	if _, err := slots.ReadAt(got, int64(wc.Immediate)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s at %d\n", got, wc.Immediate)
	// Output: written at 32
}

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
	if _, err := succeeded(server.SendCQ().Next(ctx)); err != nil { // it is bound
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

	wc, err := succeeded(server.RecvCQ().Next(ctx))
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
		if _, err := succeeded(client.RecvCQ().Next(ctx)); err != nil {
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
	if _, err := succeeded(server.RecvCQ().Next(ctx)); err != nil {
		return err
	}
	err := server.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("hello world"), Remote: to, Unsignaled: true})
	if err != nil {
		return err
	}
	return server.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Invalidate: to.STag, Unsignaled: true})
}

// succeeded returns the error of a completion, too: Next has none where a request has failed.
func succeeded(wc iwarp.WC, err error) (iwarp.WC, error) {
	if err == nil {
		err = wc.Err()
	}
	return wc, err
}
