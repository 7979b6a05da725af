package rig

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// Two ends of which each posts 50 Sends of 64 KiB, and closes.
const (
	drainSends = 50
	drainSize  = 64 << 10
)

// DeepQueues has room for all that PostAll posts.
func DeepQueues() iwarp.QPConfig { return iwarp.QPConfig{SendDepth: 64, RecvDepth: 64} }

// PostAll posts receives for all that the other end sends, and the Sends.
func PostAll(ini, res *End) { PostSends(ini, res, drainSends) }

// PostSends is PostAll with another number.
func PostSends(ini, res *End, n uint64) {
	for _, e := range []*End{ini, res} {
		sink := e.MR(drainSize, iwarp.LocalWrite)
		for i := range n {
			e.MustPostRecv(i, sink.Slice(0, drainSize))
		}
	}
	for _, e := range []*End{ini, res} {
		src := e.Filled(drainSize, 1, 0)
		for i := range n {
			e.MustPost(&iwarp.SendWR{ID: i, Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, drainSize)}})
		}
	}
}

// WantAll expects every Send and every receive to have succeeded.
func WantAll(t *testing.T, ends ...*End) {
	t.Helper()
	WantSends(t, drainSends, ends...)
}

// WantSends is WantAll with another number.
func WantSends(t *testing.T, n int, ends ...*End) {
	t.Helper()
	for _, e := range ends {
		done := map[iwarp.Op]int{}
		var wc [1]iwarp.WC
		for e.SendCQ().Poll(wc[:]) == 1 {
			Must(t, wc[0].Err())
			done[wc[0].Op]++
		}
		if done[iwarp.OpSend] != n || done[iwarp.OpRecv] != n {
			t.Fatalf("QP %d: %v of %d each; %v", e.Num(), done, n, e.Err())
		}
	}
}

// AnswersWhile has one end close, and the other read some time later.
func AnswersWhile(t *testing.T, reader, closer *End, after time.Duration) {
	const reads, size = 4, 64
	mem, sink := closer.Filled(size, 7, iwarp.RemoteRead), reader.MR(size, iwarp.LocalWrite)
	closed := DialInBackground(t, closer.Close)
	time.Sleep(after)
	for id := range uint64(reads) {
		reader.MustPost(&iwarp.SendWR{ID: id, Op: iwarp.OpRead,
			SGL: []iwarp.SGE{sink.Slice(0, size)}, Remote: mem.Remote(0)})
	}
	for id := range uint64(reads) {
		reader.WantSent(iwarp.OpRead, id, iwarp.StatusSuccess)
	}
	Same(t, "Reads", sink, mem)
	Should(t, reader.Close())
	Should(t, <-closed)
}

// OneReceive is a Prepare.
func OneReceive(qp *iwarp.QP) error { return qp.PostRecv(&iwarp.RecvWR{ID: 1}) }

// WriteNowhere posts a Write that the peer refuses.
func WriteNowhere(e *End) {
	e.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: iwarp.Remote{STag: 7}, Unsignaled: true})
}

// EndInOrder closes from one side by a transition, which leaves the QPs Idle. No
// work is taken before they are made ready for another connection.
func EndInOrder(t *testing.T, ini, res *End) {
	t.Helper()
	Must(t, ini.Modify(iwarp.StateClosing))
	for _, e := range []*End{ini, res} {
		Must(t, e.WantEnd())
		if s := e.State(); s != iwarp.StateClosed {
			t.Errorf("state %v after an orderly close", s)
		}
		if err := e.PostSend(&iwarp.SendWR{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a Send: %v", err)
		}
		if _, err := e.Recv(t.Context(), iwarp.SGE{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Recv: %v", err)
		}
	}
}

// TwoWait has four Sends come of which two may wait, and no receive posted: the peer is held back.
func TwoWait(t *testing.T, ini, res *End) {
	t.Helper()
	for range 4 {
		Must(t, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
	}
	Until(t, func() bool { return res.Stats().Received[rdmap.OpSend].Messages >= 2 }, "messages wait")
}
