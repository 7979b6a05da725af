// Package a has calls that look at the error of a request, and calls that overlook it.
package a

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
)

func dropped(ctx context.Context, cq *iwarp.CQ) error {
	_, err := cq.Next(ctx) // want "nobody looks at whether the request has failed"
	return err
}

func ignored(ctx context.Context, cq *iwarp.CQ) {
	cq.Next(ctx) // want "nobody looks"
}

func overlooked(ctx context.Context, cq *iwarp.CQ) (uint64, error) {
	wc, err := cq.Next(ctx) // want "nobody looks"
	if err != nil {
		return 0, err
	}
	copied := wc
	return copied.ID, nil
}

func declared(ctx context.Context, cq *iwarp.CQ) int {
	var wc, err = cq.Next(ctx) // want "nobody looks"
	if err != nil {
		return 0
	}
	return wc.Length
}

func polled(cq *iwarp.CQ) (sum int) {
	var wc [8]iwarp.WC
	for i := range cq.Poll(wc[:4]) { // want "nobody looks"
		sum += wc[i].Length
	}
	return sum + len(wc)
}

func ranged(cq *iwarp.CQ) (sum int) {
	wc := make([]iwarp.WC, 8)
	n := cq.Poll(wc) // want "nobody looks"
	for _, c := range wc[:n] {
		sum += c.Length
	}
	return sum
}

func asked(ctx context.Context, cq *iwarp.CQ) error {
	wc, err := cq.Next(ctx)
	if err != nil {
		return err
	}
	return wc.Err()
}

func askedStatus(ctx context.Context, cq *iwarp.CQ) (ok bool) {
	wc, err := cq.Next(ctx)
	copied := &wc
	return err == nil && copied.Status == iwarp.StatusSuccess
}

func passed(ctx context.Context, cq *iwarp.CQ) (iwarp.WC, error) { return cq.Next(ctx) }

func named(ctx context.Context, cq *iwarp.CQ) (wc iwarp.WC, err error) {
	wc, err = cq.Next(ctx)
	return
}

func printed(ctx context.Context, cq *iwarp.CQ) {
	wc, _ := cq.Next(ctx)
	fmt.Println(wc)
}

func onPurpose(ctx context.Context, cq *iwarp.CQ) {
	wc, _ := cq.Next(ctx)
	_ = wc
}

func askedEach(cq *iwarp.CQ) (err error) {
	var wc [8]iwarp.WC
	for _, c := range wc[:cq.Poll(wc[:])] {
		err = c.Err()
	}
	return err
}

func askedOne(cq *iwarp.CQ) error {
	wc := make([]iwarp.WC, 1)
	for cq.Poll(wc) == 0 {
	}
	return wc[0].Err()
}

func filled(cq *iwarp.CQ, wc []iwarp.WC) int { return cq.Poll(wc) }

type queue struct{ wc [4]iwarp.WC }

func (q *queue) fill(cq *iwarp.CQ) int { return cq.Poll(q.wc[:]) }
