//go:build interop && linux

package align_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestWholeWords has an MTU that makes the EMSS no multiple of four, which FPDUs are: Dial sees
// to it that the EMSS of both directions is one all the same, so that FPDUs fill segments and
// TCP need not send each by itself.
//
// Proves S03, S04.
func TestWholeWords(t *testing.T) {
	for _, c := range []struct{ mtu, emss int }{{1450, 1396}, {1497, 1444}, {1498, 1444}, {1499, 1444},
		{1500, 1448}, {1501, 1448}} {
		t.Run(fmt.Sprintf("MTU %d", c.mtu), func(t *testing.T) {
			l := newLink(t, c.mtu, true)
			a, b := l.connect(t, false, iwarp.FPDUsDefault, 1<<20)
			for _, w := range workloads {
				w.run(a, b)
			}
			for _, e := range []*end{a, b} {
				if s := e.Stats(); s.EMSS != c.emss || s.SocketWrites == 0 || s.AlignedWrites != s.SocketWrites {
					t.Errorf("an EMSS of %d, want %d; %d of %d writes are aligned",
						s.EMSS, c.emss, s.AlignedWrites, s.SocketWrites)
				}
			}
			closeBoth(a, b)
		})
	}
}
