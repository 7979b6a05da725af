package iwarp_test

import (
	"context"
	"fmt"
	"log"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A Write has no completion at its sink, which waits for its last octet: ReadAt sees that when all of the Write is there,
// whatever its length.
func ExampleMR_ReadAt() {
	ctx := context.Background()
	ini, res, err := examplePair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer ini.Close()
	defer res.Close()
	text := []byte("seventeen octets!")
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
	// Output: seventeen octets!
}

// The same with an atomic load, which costs nothing while there is nothing: of the last eight octets of the Write, which end
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
	record := append([]byte("sixteen octets, "), 1, 1, 1, 1, 1, 1, 1, 1)
	check(ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: record, Remote: mr.Remote(0)}))

	flag := (*uint64)(unsafe.Pointer(&mr.Bytes()[n-8])) // the last 8 of n octets; n is a multiple of 8
	for atomic.LoadUint64(flag) == 0 {
		runtime.Gosched()
	}
	fmt.Printf("%s\n", mr.Bytes()[:16])
	// Output: sixteen octets,
}

// examplePair connects two QPs in one process.
func examplePair(ctx context.Context) (ini, res *iwarp.QP, err error) {
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
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
