package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
)

// manySends are as many Sends without data, numbered from 0 on.
func manySends(n uint64) (all []iwarp.SendWR) {
	for id := range n {
		all = append(all, iwarp.SendWR{ID: id})
	}
	return all
}

// TestPostSends posts requests together, which arrive in order, and complete. One that cannot be posted ends
// the list: those before it are on their way.
func TestPostSends(t *testing.T) {
	ini, res := setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{Nudge: -1}}}.connect(t) // a nudge would send them later
	if n, err := ini.PostSends(nil); n != 0 || err != nil {
		t.Errorf("none: %d, %v", n, err)
	}
	wrong := manySends(3)
	wrong[2].SGL = []iwarp.SGE{{Length: 1}}
	for _, c := range []struct {
		wrs   []iwarp.SendWR
		takes int
		err   error
	}{{manySends(4), 4, nil}, {wrong, 2, iwarp.ErrInvalid}} {
		for id := range c.takes {
			res.postRecv(uint64(id))
		}
		if n, err := ini.PostSends(c.wrs); n != c.takes || !errors.Is(err, c.err) {
			t.Errorf("%d posted, %v, want %d, %v", n, err, c.takes, c.err)
		}
		for id := range uint64(c.takes) {
			res.wantReceived(id, iwarp.StatusSuccess)
			ini.wantSent(iwarp.OpSend, id, iwarp.StatusSuccess)
		}
	}
	finish(t, ini, res)
}

// TestPostAll posts requests that belong together, or none of them: not those before one that is wrong, or that has no room.
func TestPostAll(t *testing.T) {
	ini, res := setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{Nudge: -1, SendDepth: 4}}}.connect(t)
	for id := range uint64(4) {
		res.postRecv(id)
	}
	wrong := manySends(4)
	wrong[3].SGL = []iwarp.SGE{{Length: 1}}
	for _, c := range []struct {
		wrs []iwarp.SendWR
		err error
	}{{manySends(5), iwarp.ErrQueueFull}, {wrong, iwarp.ErrInvalid}, {nil, nil}, {manySends(4), nil}} {
		if err := ini.PostAll(c.wrs); !errors.Is(err, c.err) {
			t.Errorf("%d requests: %v, want %v", len(c.wrs), err, c.err)
		}
		if c.err != nil && ini.Query().Sends != 0 {
			t.Errorf("%d requests are posted of those with %v", ini.Query().Sends, c.err)
		}
	}
	for id := range uint64(4) {
		res.wantReceived(id, iwarp.StatusSuccess)
		ini.wantSent(iwarp.OpSend, id, iwarp.StatusSuccess)
	}
	finish(t, ini, res)
}

// TestInlineLimit posts as much inline data as the QP takes, and one octet more.
func TestInlineLimit(t *testing.T) {
	ini, res := setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{MaxInline: 10}}}.connect(t)
	wantSaid(t, "11 octets", ini.PostSend(&iwarp.SendWR{Inline: make([]byte, 11)}), iwarp.ErrInvalid, "takes 10 at most")
	res.postRecv(1, res.mr(10, iwarp.LocalWrite).Slice(0, 10))
	ini.post(&iwarp.SendWR{ID: 1, Inline: make([]byte, 10)})
	if wc := res.wantReceived(1, iwarp.StatusSuccess); wc.Length != 10 {
		t.Errorf("%d octets have come", wc.Length)
	}
	finish(t, ini, res)
}

// TestUnpolledCount: what is complete takes its place in the queue until it has been polled, so that no CQ overflows
// that is as deep as its queues. A queue that has ended says why, full or not.
func TestUnpolledCount(t *testing.T) {
	ini, res := setup{accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{RecvDepth: 2}}}.connect(t)
	for id := range uint64(2) {
		res.postRecv(id)
		ini.post(&iwarp.SendWR{ID: id})
		ini.wantSent(iwarp.OpSend, id, iwarp.StatusSuccess)
	}
	must(t, res.RecvCQ().Wait(within(t)))
	until(t, func() bool { return res.Query().Receives == 0 }, "the second message")
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a third receive: %v", err)
	}
	must(t, ini.Abort())
	wait(t, res.Done(), "the end of the connection")
	if err := res.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("a receive at the end: %v", err)
	}
	for id := range uint64(2) {
		res.wantReceived(id, iwarp.StatusSuccess)
	}

	qp := create(t, res.pd, iwarp.QPConfig{RecvDepth: 1})
	must(t, qp.PostRecv(&iwarp.RecvWR{}))
	must(t, qp.Modify(iwarp.StateError)) // which flushes it
	if err := qp.PostRecv(&iwarp.RecvWR{}); err == nil || errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a receive in state Error: %v", err)
	}
	must(t, qp.Modify(iwarp.StateIdle))
	if err := qp.PostRecv(&iwarp.RecvWR{}); !errors.Is(err, iwarp.ErrQueueFull) {
		t.Errorf("a receive in state Idle, with one to be polled: %v", err)
	}
	if n := qp.RecvCQ().Poll(make([]iwarp.WC, 2)); n != 1 {
		t.Errorf("%d completions", n)
	}
	must(t, qp.PostRecv(&iwarp.RecvWR{}))
}
