package target_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// from has the connections that follow come from an address, each from another port.
func (r *rig) from(address string) {
	port := 0
	r.wrap = func(a, b *testrig.Conn) (conn, conn) {
		port++
		return between(fmt.Sprintf("%s:%d", address, port), "192.0.2.9:4420")(a, b)
	}
}

// TestOneAddress: connections without a Connect, all of one address, do not keep others out; one more takes the place
// of the most silent of them, and hosts that have sent a Connect stay, however long they are silent.
func TestOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.from("192.0.2.2")
		host := r.admin()
		all := []*wire{host}
		for qid := range uint16(DefaultQueues) {
			all = append(all, r.io(host, qid+1, 8))
		}
		time.Sleep(time.Second)

		r.from("192.0.2.1")
		crowd := []*wire{}
		for range DefaultControllers * (DefaultQueues + 1) {
			crowd = append(crowd, r.dial(0, 32))
			time.Sleep(time.Microsecond)
		}
		refused := (*iwarp.RejectError)(nil)
		if _, err := r.try(requestOf(0, 32), offer); !errors.As(err, &refused) {
			t.Fatalf("one more of the same address: %v", err)
		}

		r.from("192.0.2.3")
		other := r.dial(0, 32)
		other.host = 3
		other.connect(0).enable()

		time.Sleep(time.Second)
		r.from("192.0.2.1")
		last := r.dial(0, 32)
		if !crowd[0].ended() || crowd[1].ended() || last.ended() {
			t.Error("one more of the same address after a second: it has to take the place of the most silent")
		}
		for i, w := range append(all, other) {
			if w.ended() {
				t.Errorf("queue %d of a host with a Connect has ended", i)
			}
		}
		host.want(capsule.Success, capsule.Features{SGL: capsule.SGL{Type: capsule.SGLKeyed},
			Feature: capsule.FeatureKeepAlive, Value: 0}.Set(), nil)
	})
}

// TestConnectsWithoutData: a host that may not connect sends a Connect on each of its connections, and does not answer
// the RDMA Read of its data. They are as those without a Connect: one address cannot take all places by them, and they
// give way.
func TestConnectsWithoutData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Controllers, c.Queues, c.Hosts = 4, 4,
				[]string{"nqn.2026-11.example:other"}
		})
		r.from("192.0.2.1")
		var crowd []*wire
		for range 21 { // three quarters of the places for 20 queues, and of a third more
			w := r.dial(0, 32)
			w.lax = true
			s := w.put(w.data(capsule.AnyController, nqn).Append(nil), 0)
			w.conn.is.Store(true)
			w.send(capsule.Connect{SGL: s, SQSize: 31}.Command(), nil)
			crowd = append(crowd, w)
			time.Sleep(time.Millisecond)
		}
		refused := (*iwarp.RejectError)(nil)
		if _, err := r.try(requestOf(0, 32), offer); !errors.As(err, &refused) {
			t.Fatalf("one more of the same address: %v", err)
		}
		time.Sleep(time.Second)
		if last := r.dial(0, 32); !crowd[0].ended() || crowd[1].ended() || last.ended() {
			t.Error("one more of the same address after a second: it has to take the place of the most silent")
		}
	})
}

// TestManyAddresses: where all places are taken, one without a Connect gives way.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Controllers, c.Queues = 1, 2 })
		var crowd []*wire
		for i := range 4 { // places for 3 queues, and one more
			r.from(fmt.Sprintf("192.0.2.%d", i+10))
			crowd = append(crowd, r.dial(0, 32))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		r.from("192.0.2.2")
		host := r.admin()
		r.io(host, 1, 8)
		r.io(host, 2, 8)
		for i, w := range crowd {
			if w.ended() != (i < 3) {
				t.Errorf("connection %d without a Connect has ended: %v", i, w.ended())
			}
		}
	})
}
