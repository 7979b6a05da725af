package iwarp_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// A peer that reads slowly gets all of a Write as it was before Detach, and not an octet of what the program has
// put into its memory afterwards.
func TestDetachWhileSending(t *testing.T) {
	t.Parallel()
	ini, p := initiateToPeer(t)
	p.want(rdmap.OpWrite) // RTR
	const n = 16 << 20    // more than the sockets hold
	mr := ini.mr(n, 0)
	for i := range mr.Bytes() {
		mr.Bytes()[i] = 1
	}
	ini.post(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{mr.Slice(0, n)}, Remote: iwarp.Remote{STag: 7}})
	must(t, mr.Detach())
	for i := range mr.Bytes() { // the program's own again
		mr.Bytes()[i] = 2
	}
	for got := 0; got < n; {
		f, err := p.link.NextSegment(time.Time{})
		if err != nil {
			t.Fatalf("peer: %v", err)
		}
		if rest := bytes.Trim(f.Payload, "\x01"); len(rest) > 0 {
			t.Fatalf("after octet %d: %d, written after Detach", got, rest[0])
		}
		got += len(f.Payload)
	}
	if wc := next(t, ini.SendCQ()); wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed with %v", wc.Status)
	}
	must(t, mr.Deregister())
	if err := mr.Detach(); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("after Deregister: %v", err)
	}
}
