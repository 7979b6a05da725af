package iwarp_test

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
	"github.com/goiwarp/iwarp/sctp/chunk"
)

// A reluctant socket takes its time with a Terminate.
type reluctant struct {
	iwarp.UDPSocket
	said *atomic.Bool
}

func (r reluctant) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	all, _ := chunk.In(b)
	for _, c := range all {
		d, ok := c.Data()
		m := sctp.Message{PPID: d.PPID, Data: d.Octets}
		if ok && m.Function() == sctp.FunctionTerminate {
			time.Sleep(50 * time.Millisecond)
			r.said.Store(true)
		}
	}
	return r.UDPSocket.WriteToUDPAddrPort(b, to)
}

// A patient socket is one in memory that waits until it is closed, whatever its deadline.
type patient struct{ *testrig.Socket }

func (patient) SetReadDeadline(time.Time) error { return nil }

// TestSCTPDialFailsThenExit: a program that ends when its Dial has failed takes nothing along: who answers against the rules
// has been sent the Terminate.
//
// RFC 5043, section 6.1: "the DDP Stream Session MUST be terminated." [C04]
func TestSCTPDialFailsThenExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, others := testrig.Link{Delay: time.Millisecond}.Sockets()
		defer others.Close()
		defer time.Sleep(testrig.Soon) // until the association has ended
		ctx := within(t)
		go answersWithInitiate(ctx, patient{others})
		var said atomic.Bool
		inMemory := func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { return reluctant{ours, &said}, s.Close() }
		d := iwarp.Dialer{WrapUDP: inMemory}
		_, err := d.Dial(ctx, "sctp4", others.LocalAddr().String())
		if broken, ok := errors.AsType[*sctp.Violation](err); !ok || broken.Rule != sctp.RuleSequence {
			t.Errorf("Dial: %v", err)
		}
		if !said.Load() {
			t.Error("the program may end, and the peer has not been told")
		}
	})
}

// answersWithInitiate is a peer that asks for a session where it should answer.
func answersWithInitiate(ctx context.Context, pc script.Socket) {
	until, _ := ctx.Deadline()
	a, err := script.Answer(ctx, pc, script.DDPSetup(), until)
	if err != nil {
		return
	}
	if stream, ok := a.Asked(until); ok {
		a.Send(a.Session(stream).Function(sctp.FunctionInitiate))
	}
	for ok := true; ok; {
		_, ok = a.Next(until)
	}
}
