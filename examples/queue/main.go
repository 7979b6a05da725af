// Command queue hands out work by Sends: a boss has jobs, and workers come, take some, and send back what has come of them.
//
//	queue boss :7471 FILE...       # the jobs: digests of these files
//	queue work HOST:7471
//
// A Send needs a receive that is posted at the other end, or the connection ends. So each end says beforehand how much it
// can take, and the other never has more on the way: credits. Here they are given once, in the private data of the
// connection: a worker asks for as many jobs as it wants to have at a time, and has posted a receive for each. The boss
// posts a receive for each result before it accepts. A result gives one credit back, as its worker has posted the job's receive
// again before it sends it; the boss does the same before it sends the next job. No message is lost for want of a
// receive, and none is there only to say that there is room.
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
		ln, err := iwarp.Listen(ctx, "tcp", args[1], iwarp.ListenConfig{})
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
