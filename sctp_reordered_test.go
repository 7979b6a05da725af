package iwarp_test

import (
	"encoding/binary"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSCTPReordered: over a link that changes the order of packets, octets of Writes, Sends and Read Responses are placed ahead
// of those in front of them, which Stats counts, and everything is delivered in the order of sending: a Send that tells of a
// Write comes when all of that is there.
//
// Proves D26.
func TestSCTPReordered(t *testing.T) {
	t.Parallel()
	const rounds, size = 40, 20_000
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: soon})
	must(t, err)
	defer ln.Close()
	link, err := script.RelaySCTP(ln.Addr().String(), script.Permute(20, 1))
	must(t, err)
	defer link.Close()
	accepted := res.takes(ln, iwarp.AcceptConfig{})
	d := iwarp.Dialer{PD: ini.pd, QP: unhurried(iwarp.QPConfig{}), MPA: mpa.Offer{Timeout: soon}}
	ini.QP, err = d.Dial(within(t), "sctp4", link.Addr())
	must(t, err)
	must(t, <-accepted)

	inbox, sink := res.mr(rounds*size, iwarp.LocalWrite), res.mr(size, iwarp.RemoteWrite|iwarp.RemoteRead)
	for i := range rounds {
		res.postRecv(uint64(i), inbox.Slice(i*size, size))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		source, back := ini.mr(size, iwarp.LocalWrite), ini.mr(size, iwarp.LocalWrite)
		for i := range rounds {
			copy(source.Bytes(), numbered(size, i))
			_, err := ini.Write(within(t), source.Slice(0, size), sink.Remote(0))
			must(t, err)
			must(t, ini.Send(within(t), source.Slice(0, size)))
			if _, err = ini.Read(within(t), back.Slice(0, size), sink.Remote(0)); err != nil || string(back.Bytes()) != string(numbered(size, i)) {
				t.Errorf("round %d: read something else (%v)", i, err)
				return
			}
		}
	}()
	for i := range rounds {
		res.wantReceived(uint64(i), iwarp.StatusSuccess)
		if got := inbox.Bytes()[i*size:][:size]; string(got) != string(numbered(size, i)) {
			t.Fatalf("message %d is message %d", i, binary.BigEndian.Uint32(got))
		}
	}
	<-done
	for who, e := range map[string]*end{"the Initiator, by Reads": ini, "the Responder": res} {
		a := e.Stats().Ahead
		t.Logf("%s: %d octets in %d segments placed ahead, %d octets held, %d at a time", who, a.PlacedOctets, a.Placed, a.HeldOctets, a.MostOctets)
		if a.PlacedOctets == 0 || a.Dropped > 0 || a.MostOctets > a.PlacedOctets {
			t.Errorf("%s: %+v", who, a)
		}
	}
	finish(t, ini, res)
}

// numbered are the octets of a round, which begin with its number.
func numbered(size, round int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + round*13)
	}
	binary.BigEndian.PutUint32(b, uint32(round))
	return b
}
