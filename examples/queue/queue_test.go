package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// office is a boss at work, with so many jobs.
type office struct {
	*boss
	ctx     context.Context
	addr    string
	results chan []string
}

func openOffice(t *testing.T, jobs int) *office {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range jobs {
		texts = append(texts, fmt.Sprint("job ", i))
	}
	o := &office{newBoss(texts), ctx, ln.Addr().String(), make(chan []string, 1)}
	go func() {
		results, err := o.handOut(ctx, ln)
		if err != nil {
			t.Error(err)
		}
		o.results <- results
	}()
	return o
}

func (o *office) wantAll(t *testing.T) {
	t.Helper()
	for i, got := range <-o.results {
		if want := fmt.Sprint("JOB ", i); got != want {
			t.Errorf("the result of job %d is %q, want %q", i, got, want)
		}
	}
}

// TestWork: workers that take more or less at a time do all jobs, and go home.
func TestWork(t *testing.T) {
	o := openOffice(t, 300)
	var workers sync.WaitGroup
	for _, atATime := range []int{1, 2, 7, maxCredits} {
		workers.Go(func() {
			err := work(o.ctx, o.addr, atATime, strings.ToUpper)
			if err != nil && !o.over() { // one that comes when all is done finds nobody
				t.Errorf("a worker with %d jobs at a time: %v", atATime, err)
			}
		})
	}
	o.wantAll(t)
	workers.Wait()
}

func (b *boss) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// TestVanish: the jobs of a worker that goes in the middle of them are done by another.
func TestVanish(t *testing.T) {
	o := openOffice(t, 20)
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte{5}}, QP: receiving(5)}
	qp, err := d.Dial(o.ctx, "tcp", o.addr)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // it gets all that it has credits for
		if _, _, err := receive(o.ctx, qp); err != nil {
			t.Fatal(err)
		}
	}
	worked := make(chan error, 1)
	first := make(chan struct{}, 20)
	go func() {
		worked <- work(o.ctx, o.addr, 2, func(job string) string { first <- struct{}{}; return strings.ToUpper(job) })
	}()
	for range 15 {
		<-first // the other has done all the rest, and has nothing to do
	}
	_ = qp.Abort()
	o.wantAll(t)
	if err := <-worked; err != nil {
		t.Error(err)
	}
}

// TestCheat: a worker that has results for what it was not asked is sent away, and its jobs are done by another.
func TestCheat(t *testing.T) {
	o := openOffice(t, 3)
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte{1}}, QP: receiving(1)}
	qp, err := d.Dial(o.ctx, "tcp", o.addr)
	if err != nil {
		t.Fatal(err)
	}
	job, _, err := receive(o.ctx, qp)
	if err != nil {
		t.Fatal(err)
	}
	if err := send(qp, job+1, "false"); err != nil {
		t.Fatal(err)
	}
	<-qp.Done()
	if err := work(o.ctx, o.addr, 1, strings.ToUpper); err != nil {
		t.Error(err)
	}
	o.wantAll(t)
}

// TestNoCredit: who does not say how many jobs it takes, or too many, is rejected.
func TestNoCredit(t *testing.T) {
	o := openOffice(t, 1)
	for _, asked := range [][]byte{nil, {0}, {maxCredits + 1}, {1, 2}} {
		var no *iwarp.RejectError
		d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: asked}}
		if _, err := d.Dial(o.ctx, "tcp", o.addr); !errors.As(err, &no) {
			t.Errorf("%v: %v", asked, err)
		} else {
			_ = no.Conn.Close()
		}
	}
	if err := work(o.ctx, o.addr, 1, strings.ToUpper); err != nil {
		t.Error(err)
	}
	o.wantAll(t)
}

// TestTooLong: a job that no message has room for is an error, and not cut.
func TestTooLong(t *testing.T) {
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newBoss([]string{strings.Repeat("x", textLen+1)}).handOut(t.Context(), ln); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	if n := len(message(7, strings.Repeat("x", textLen))); n != messageLen || binary.BigEndian.Uint32(message(7, "")) != 7 {
		t.Errorf("the longest message has %d bytes", n)
	}
}

// TestNothing: without jobs there is nothing to wait for.
func TestNothing(t *testing.T) {
	openOffice(t, 0).wantAll(t)
}
