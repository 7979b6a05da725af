// Command kv is a key-value store whose clients read it without its help: the server offers its table for RDMA Reads, and a
// Get is one Read of the slot where the key belongs. The server's program does not run for it.
//
//	kv serve :7471
//	kv put HOST:7471 KEY VALUE
//	kv get HOST:7471 KEY
//
// What there is to learn from it, file by file:
//
//   - table.go: what a Read may see of a slot that is being written, and how it notices (a CRC);
//   - server.go: one Shared Receive Queue for all clients, with as many receives as all their credits, and how a server leaves;
//   - client.go: Reads, requests within credits, and a client that connects again.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
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
	case len(args) == 2 && args[0] == "serve":
		return serve(ctx, args[1])
	case len(args) == 4 && args[0] == "put":
		c := &client{addr: args[1]}
		defer c.close()
		return c.put(ctx, args[2], args[3])
	case len(args) == 3 && args[0] == "get":
		c := &client{addr: args[1]}
		defer c.close()
		value, err := c.get(ctx, args[2])
		if err == nil {
			fmt.Println(value)
		}
		return err
	}
	return errors.New("usage: kv serve ADDR, kv put ADDR KEY VALUE, or kv get ADDR KEY")
}

// serve runs until the context ends, and gives its clients 10 s to finish then.
func serve(ctx context.Context, addr string) error {
	s, err := newServer(addr, config{slots: 1 << 16, slotLen: 1 << 10, clients: 64, credits: 16})
	if err != nil {
		return err
	}
	log.Printf("serving on %v", s.ln.Addr())
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.shutdown(last)
}
