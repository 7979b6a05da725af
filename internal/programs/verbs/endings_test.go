//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
	"testing/synctest"
)

// The two ways in which a program begins an orderly end.
var endsBegun = map[string]func(q *queue, id Handle){
	"rdma_disconnect": func(q *queue, id Handle) { must(q.t, q.d.Disconnect(id)) },
	"SQD":             func(q *queue, _ Handle) { must(q.t, q.d.ModifyQP(q.qp, StateSQD)) },
}

// TestEndBegun: when the call returns the QP is in ERR, and what is posted is flushed and gets to nobody.
func TestEndBegun(t *testing.T) {
	for name, begin := range endsBegun {
		t.Run(name, func(t *testing.T) {
			client, server, active, _ := connect(t)
			into, from := server.region("...", accessLocalWrite), client.region("out", 0)
			server.recv(7, into)
			begin(client, active)
			want(t, "state", client.state(), StateErr)
			client.send(1, wrSend, from, nil)
			want(t, "status of the Send", client.completion().Status, 5)
			want(t, "status of the receive", server.completion().Status, 5)
			want(t, "what came", string(into.memory), "...")
		})
	}
}

// TestDeregisteredAfterEnd: a program deregisters the memory of its receives, or registers it anew, once it has begun
// the end, while messages of the peer are under way. They are received before that, and nobody sends a Terminate.
func TestDeregisteredAfterEnd(t *testing.T) {
	for name, leave := range map[string]func(q *queue, r *region){
		"ibv_dereg_mr": func(q *queue, r *region) { must(q.t, q.d.DeregisterMR(r.mr)) },
		"ibv_rereg_mr": func(q *queue, r *region) {
			must(q.t, q.d.ReregisterMR(r.mr, changeAccess, 0, nil, 0, accessLocalWrite))
		},
	} {
		for how, begin := range endsBegun {
			t.Run(how+", "+name, func(t *testing.T) { leaveEarly(t, begin, leave) })
		}
	}
}

func leaveEarly(t *testing.T, begin func(*queue, Handle), leave func(*queue, *region)) {
	t.Helper()
	for range 10 {
		client, server, active, _ := connect(t)
		into, from := client.region("...", accessLocalWrite), server.region("out", 0)
		for i := range uint64(8) {
			client.recv(i, into)
		}
		for i := range uint64(8) {
			server.send(i, wrSend, from, nil)
		}
		begin(client, active)
		leave(client, into)
		for _, q := range []*queue{client, server} {
			<-q.inner().qp.Done()
			if s := q.inner().qp.Stats(); len(s.TerminatesSent) > 0 {
				t.Fatalf("Terminates: %v", s.TerminatesSent)
			}
		}
	}
}

// TestAwaitEnds waits for the ends under way of those that it asks about, and for no others.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e endings
		mine, other := new(QP), new(QP)
		isMine := func(q *QP) bool { return q == mine }
		e.await(isMine)
		first, second := e.add(mine), e.add(mine)
		e.await(func(q *QP) bool { return q == other })
		waited := make(chan bool)
		go func() {
			e.await(isMine)
			close(waited)
		}()
		over := func() bool {
			synctest.Wait()
			select {
			case <-waited:
				return true
			default:
				return false
			}
		}
		e.remove(first)
		want(t, "with one left", over(), false)
		e.remove(second)
		want(t, "with none left", over(), true)
		e.await(isMine)
	})
}

// TestResetAfterEndBegun: RESET waits for an end that was begun, and is refused: the QP would go to ERR after it.
func TestResetAfterEndBegun(t *testing.T) {
	for name, begin := range endsBegun {
		t.Run(name, func(t *testing.T) {
			client, _, active, _ := connect(t)
			begin(client, active)
			want(t, "RESET", client.d.ModifyQP(client.qp, StateReset), syscall.EINVAL)
			want(t, "state", client.state(), StateErr)
		})
	}
}
