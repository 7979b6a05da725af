// Command queue hands out work by Sends: a boss has jobs, and workers come, take some, and send back what has come of them.
//
//	queue boss :7471 FILE...       # the jobs: digests of these files
//	queue work HOST:7471
//
// A worker asks for as many jobs as it wants to have at a time, in the private data of the connection. Those are the
// boss's credits, which package credits counts: a job takes one, and its result gives it back. Both ends have as many
// receives, so that no message waits for one.
//
// A worker that vanishes has its jobs done by others: boss.go. What is done twice is counted once.
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
	case len(args) > 2 && args[0] == "boss":
		ln, err := iwarp.Listen(ctx, "tcp", args[1])
		if err != nil {
			return err
		}
		log.Printf("%d jobs on %v", len(args)-2, ln.Addr())
		results, err := newBoss(args[2:]).handOut(ctx, ln)
		for i, result := range results {
			fmt.Printf("%s  %s\n", result, args[2+i])
		}
		return err
	case len(args) == 2 && args[0] == "work":
		return work(ctx, args[1], 4, digest)
	}
	return errors.New("usage: queue boss ADDR FILE [FILE ...], or queue work ADDR")
}
