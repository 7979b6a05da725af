package iwarp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
)

// One goroutine waits for the completions of two queues: it arms each, and looks once more before it waits.
func ExampleCompChannel() {
	ctx := context.Background()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	channel, err := rnic.NewCompChannel()
	if err != nil {
		log.Fatal(err)
	}
	names := map[*iwarp.CQ]string{}
	for _, name := range []string{"first", "second"} {
		cq, err := channel.CreateCQ(16)
		if err != nil {
			log.Fatal(err)
		}
		names[cq] = name
		cq.Arm(false)
		qp, err := pd.CreateQP(iwarp.QPConfig{SendCQ: cq})
		if err == nil {
			err = qp.PostRecv(&iwarp.RecvWR{})
		}
		if err == nil {
			err = qp.Modify(iwarp.StateError) // it has no connection: the receive is flushed
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	for range names {
		cq, err := channel.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		cq.Arm(false)
		var wc [16]iwarp.WC
		for n := cq.Poll(wc[:]); n > 0; n = cq.Poll(wc[:]) {
			fmt.Println(names[cq], wc[0].Op, wc[0].Status)
		}
	}
	// Output:
	// first Recv flushed
	// second Recv flushed
}
