//go:build linux && (amd64 || arm64)

package verbs

import (
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
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

// TestDeregisteredAfterEnd: a program deregisters the memory of its receives once it has begun the end, while messages of the peer are under way. They are
// received before that, and nobody sends a Terminate.
func TestDeregisteredAfterEnd(t *testing.T) {
	for name, begin := range endsBegun {
		t.Run(name, func(t *testing.T) {
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
				must(t, client.d.DeregisterMR(into.mr))
				for _, q := range []*queue{client, server} {
					if s := q.inner().qp.Stats(); len(s.TerminatesSent) > 0 {
						t.Fatalf("Terminates: %v", s.TerminatesSent)
					}
				}
			}
		})
	}
}

// TestAwaitEnds waits for the ends under way in one's own PD, and for no others.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e endings
		mine, other := new(iwarp.PD), new(iwarp.PD)
		e.await(mine)
		first, second := e.add(mine), e.add(mine)
		e.await(other)
		waited := make(chan bool)
		go func() {
			e.await(mine)
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
		e.await(mine)
	})
}
