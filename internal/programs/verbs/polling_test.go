//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// TestPollingYields: of a program's polls in vain, from many in a row on, some let others run first. A completion
// begins anew.
func TestPollingYields(t *testing.T) {
	a, b := met(t)
	var wc [1]WC
	inVain := func() {
		t.Helper()
		for i := 1; i <= patientPolls+2*yieldEvery; i++ {
			yields := false
			a.d.giveWay = func() { yields = true }
			want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
			want(t, "yields", yields, i >= patientPolls && i%yieldEvery == 0)
		}
	}
	inVain()
	a.recv(1, a.region("....", accessLocalWrite))
	b.send(2, wrSend, b.region("next", 0), nil)
	b.completion()
	a.wantRecv(1, 4, wcRecv, 0, 0)
	inVain()
}
