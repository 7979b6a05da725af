// Command flag passes records from one program to another by RDMA Writes alone: the receiver is told nothing, and finds each
// record by polling a word of its memory. That is how RDMA gets its shortest latencies, and it rests on the memory model.
//
//	flag listen :7471
//	flag write HOST:7471 TEXT...
//
// # What is promised
//
// Over TCP, the last eight bytes of a Write, at an address that is a multiple of eight, are stored as one word after all
// others of the Write, and after everything that its peer has sent before. So a program that loads this word atomically, and
// sees the new value, sees the whole record (docs/memory.md, "Waiting for a Write"). Nothing is promised of any other
// word, or of a plain load.
//
// Over SCTP, and over a TCP that is aware of MPA where there are markers, segments are placed in whatever order they
// arrive: the flag may be there and the record not. RFC 5040, section 5.5, promises nothing before a Send is delivered, so
// that a program for every network has a Send follow its Writes, or a WriteImm. This one takes "tcp".
//
// The slots are a ring, and what keeps the writer from overtaking the reader is a flag in the other direction: the reader
// writes the number of the record that it has read last into a word of the writer's. Each end polls memory of its own, and nobody asks.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/goiwarp/iwarp"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "listen":
		ln, err := iwarp.Listen(ctx, "tcp", args[1])
		if err != nil {
			return err
		}
		log.Printf("listening on %v", ln.Addr())
		err = receive(ctx, ln, func(text string) { fmt.Println(text) })
		return errors.Join(err, ln.Close())
	case len(args) >= 3 && args[0] == "write":
		return write(ctx, args[1], args[2:])
	}
	return errors.New("usage: flag listen ADDR, or flag write ADDR TEXT [TEXT ...]")
}
