package sctp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestSCTPSilentAtTheEnd: a peer that has acknowledged everything but our Terminate, and is silent then, may have
// ended: that is in order. One that has not acknowledged the last Send either is lost, however short that is.
func TestSCTPSilentAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		last []byte
		lost bool
	}{"Terminate": {nil, false}, "a Send": {[]byte{1}, true}} {
		synctest.Test(t, func(t *testing.T) {
			p := rig.NewLinkedPair(t, testrig.Link{Delay: 20 * time.Millisecond})
			ini, res := p.Connect(iwarp.QPConfig{HalfClose: true})
			sink := res.MR(64, iwarp.LocalWrite)
			res.MustPostRecv(1, sink.Slice(0, 64))
			res.MustPostRecv(2, sink.Slice(0, 64))
			ini.MustPost(&iwarp.SendWR{ID: 1, Inline: []byte("acknowledged")})
			rig.Must(t, res.CloseWrite())
			time.Sleep(time.Second)
			rig.Must(t, p.Sockets[1].Close())
			if c.last != nil {
				ini.MustPost(&iwarp.SendWR{ID: 2, Inline: c.last})
				ini.WantSent(iwarp.OpSend, 1, iwarp.StatusSuccess)
				ini.WantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
			}
			if err := ini.Close(); !c.lost && err != nil {
				t.Errorf("%s: %v", name, err)
			} else if c.lost {
				rig.WantUndelivered(t, ini, err)
			}
		})
	}
}

// TestSCTPUndelivered: the peer gives up, or falls silent, while what completed here is on its way. Close waits for
// that, and tells of it.
func TestSCTPUndelivered(t *testing.T) {
	for name, leave := range map[string]func(p *rig.LinkedPair, res *rig.End) error{
		"gives up": func(_ *rig.LinkedPair, res *rig.End) error { return res.Abort() },
		"silent":   func(p *rig.LinkedPair, _ *rig.End) error { return p.Sockets[1].Close() },
	} {
		t.Run(name, func(t *testing.T) { wantTold(t, leave) })
	}
}

func wantTold(t *testing.T, leave func(p *rig.LinkedPair, res *rig.End) error) {
	synctest.Test(t, func(t *testing.T) {
		const sends, size = 2, 64 << 10
		p := rig.NewLinkedPair(t, testrig.Link{Delay: 20 * time.Millisecond, Rate: 40_000})
		ini, res := p.Connect(iwarp.QPConfig{SendDepth: 64, RecvDepth: 64, HalfClose: true})
		sink, src := res.MR(size, iwarp.LocalWrite), ini.Filled(size, 1, 0)
		for i := range uint64(sends) {
			rig.Must(t, res.PostRecv(&iwarp.RecvWR{ID: i, SGL: []iwarp.SGE{sink.Slice(0, size)}}))
		}
		rig.Must(t, res.CloseWrite())
		for i := range uint64(sends) {
			ini.MustPost(&iwarp.SendWR{ID: i, SGL: []iwarp.SGE{src.Slice(0, size)}})
		}
		closed := rig.DialInBackground(t, ini.Close)
		for i := range uint64(sends) {
			ini.WantSent(iwarp.OpSend, i, iwarp.StatusSuccess)
		}
		synctest.Wait()
		rig.Must(t, leave(p, res))
		rig.WantUndelivered(t, ini, <-closed)
	})
}

// TestSCTPCloseAtOnce has either end close in the moment of its startup: Reads that the other posts before it can know
// of that are answered. The round trip is known from the handshake of SCTP alone.
//
// Proves D30.
func TestSCTPCloseAtOnce(t *testing.T) {
	const delay = 20 * time.Millisecond
	for _, responder := range []bool{true, false} {
		for _, after := range []time.Duration{0, delay / 2, delay - 1} {
			synctest.Test(t, func(t *testing.T) {
				reader, closer := rig.NewLinkedPair(t, testrig.Link{Delay: delay}).Connect(iwarp.QPConfig{})
				if !responder {
					reader, closer = closer, reader
				}
				rig.AnswersWhile(t, reader, closer, after)
			})
		}
	}
}
