package iwarp_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A counter that peers and the program share: each gets a number of its own.
func ExampleQP_FetchAdd() {
	ctx := context.Background()
	client, server, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer server.Close()
	memory := make([]byte, iwarp.AtomicLen)
	mr, err := server.PD().Register(memory, iwarp.RemoteAtomic)
	if err != nil {
		log.Fatal(err)
	}
	counter := (*uint64)(unsafe.Pointer(&memory[0]))
	fmt.Println("the server draws", atomic.AddUint64(counter, 1))
	drawn, err := client.FetchAdd(ctx, mr.Remote(0), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the client draws", drawn+1)
	fmt.Println("drawn so far:", atomic.LoadUint64(counter))
	// Output:
	// the server draws 1
	// the client draws 2
	// drawn so far: 2
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
