package iwarp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestNoMemoryInText prints an MR in all ways that there are: the memory is in none.
func TestNoMemoryInText(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	mr, err := e.pd.Register([]byte{251, 252, 253, 254}, iwarp.LocalWrite)
	must(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%x", "%s"} {
		for _, v := range []any{mr, *mr, mr.Slice(0, 4), []iwarp.MR{*mr}} {
			text := strings.ToLower(fmt.Sprintf(verb, v))
			// One octet alone may be in an address.
			for _, memory := range []string{"251 252 253", "251, 252, 253", "fb, 0xfc, 0xfd", "fbfcfd", "fb fc fd"} {
				if strings.Contains(text, memory) {
					t.Errorf("%s of a %T: %s", verb, v, text)
				}
			}
		}
	}
}

// TestTextOfWork prints a PD, and completions.
func TestTextOfWork(t *testing.T) {
	t.Parallel()
	ini, res := connect(t)
	res.mr(8, 0)
	if got, want := res.pd.String(), "PD 1 (1 QP, 0 SRQs, 1 MR)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	res.postRecv(7, res.mr(8, iwarp.LocalWrite).Slice(0, 8))
	res.postRecv(8)
	must(t, ini.Send(within(t), ini.mr(8, 0).Slice(0, 8)))
	if got, want := res.wantReceived(7, iwarp.StatusSuccess).String(), "Recv (work request 7) on QP 1: success, 8 octets"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	_ = ini.Close()
	wc := res.wantReceived(8, iwarp.StatusFlushed)
	if got, want := fmt.Sprint(wc), "Recv (work request 8) on QP 1: flushed: the peer closed the connection in order"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (iwarp.WC{ID: 3, Op: iwarp.OpRead, Status: iwarp.StatusLocalAccess}).String(), "Read (work request 3): "+iwarp.StatusLocalAccess.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
