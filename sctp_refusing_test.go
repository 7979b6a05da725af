package iwarp_test

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
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

// TestSCTPDialFailsThenExit: a program that ends when its Dial has failed takes nothing along: who answers against the rules
// has been sent the Terminate.
//
// RFC 5043, section 6.1: "the DDP Stream Session MUST be terminated." [C04]
func TestSCTPDialFailsThenExit(t *testing.T) {
	t.Parallel()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer pc.Close()
	ctx := within(t)
	go answersWithInitiate(ctx, pc)
	var said atomic.Bool
	d := iwarp.Dialer{WrapUDP: func(s iwarp.UDPSocket) (iwarp.UDPSocket, error) { return reluctant{s, &said}, nil }}
	if qp, err := d.Dial(ctx, "sctp4", pc.LocalAddr().String()); err == nil {
		t.Errorf("a QP: %v", qp)
	}
	if !said.Load() {
		t.Error("the program may end, and the peer has not been told")
	}
}

// answersWithInitiate is a peer that asks for a session where it should answer.
func answersWithInitiate(ctx context.Context, pc *net.UDPConn) {
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
