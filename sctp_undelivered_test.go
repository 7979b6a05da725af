package iwarp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestSCTPUndelivered: the peer gives up while what completed here is on its way. Close waits for that, and tells of it.
func TestSCTPUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sends, size = 2, 64 << 10
		p := newLinkedPair(t, testrig.Link{Delay: 20 * time.Millisecond, Rate: 40_000})
		ini, res := p.connect(iwarp.QPConfig{SendDepth: 64, RecvDepth: 64, HalfClose: true})
		sink, src := res.mr(size, iwarp.LocalWrite), ini.filled(size, 1, 0)
		for i := range uint64(sends) {
			must(t, res.PostRecv(&iwarp.RecvWR{ID: i, SGL: []iwarp.SGE{sink.Slice(0, size)}}))
		}
		must(t, res.CloseWrite())
		for i := range uint64(sends) {
			ini.post(&iwarp.SendWR{ID: i, SGL: []iwarp.SGE{src.Slice(0, size)}})
		}
		closed := dialInBackground(t, ini.Close)
		for i := range uint64(sends) {
			ini.wantSent(iwarp.OpSend, i, iwarp.StatusSuccess)
		}
		synctest.Wait()
		must(t, res.Abort())
		wantUndelivered(t, ini, <-closed)
	})
}
