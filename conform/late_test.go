package conform_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestLateTerminate: a peer may take its time for a Terminate that it need not send. It is no fault of the session
// after it.
func TestLateTerminate(t *testing.T) {
	t.Parallel()
	o := overSCTP("")
	r, err := script.RelaySCTP(sctpServer(t, false), func(_ *script.SCTPFlow, up bool, packet []byte, deliver func([]byte)) {
		if up || !terminates(packet) {
			deliver(packet)
			return
		}
		late := slices.Clone(packet)
		time.AfterFunc(3*o.Quiet, func() { deliver(late) })
	})
	testrig.Must(t, err)
	t.Cleanup(func() { _ = r.Close() })
	o.SCTP = r.Addr()
	got, err := conform.RunCase(t.Context(), o, caseOf(t, "sctp/function-unknown"))
	testrig.Must(t, err)
	if got.Verdict != conform.Pass {
		t.Errorf("%v: expected %s, got %s", got.Verdict, got.Expected, got.Got)
	}
}

// terminates reports whether a packet has a session control Terminate.
func terminates(packet []byte) bool {
	all, _ := chunk.In(packet)
	for _, c := range all {
		d, ok := c.Data()
		if ok && c.Type == chunk.TypeData && d.PPID == sctp.PPIDControl && len(d.Bytes) >= 4 &&
			sctp.Function(binary.BigEndian.Uint16(d.Bytes[2:])) == sctp.FunctionTerminate {
			return true
		}
	}
	return false
}
