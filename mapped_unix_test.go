//go:build unix

package iwarp_test

import (
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestMappedMemory registers memory that is not Go's, in all the ways that there are, and gives it back to
// the system after Deregister: nothing touches it then.
func TestMappedMemory(t *testing.T) {
	const n = 1 << 16
	pages, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	must(t, err)
	ini, res := connect(t)
	mr, err := res.pd.RegisterOptions(pages, iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteRead, Base: 1 << 44})
	must(t, err)
	back := ini.mr(3000, iwarp.LocalWrite)
	writeAndRead(t, ini, ini.filled(3000, 1, 0), back, mr)
	w, fast := res.mw(iwarp.MWType2), res.fast(1, n)
	res.binds(w, iwarp.Binding{Memory: mr.Slice(n-8, 8), Access: iwarp.RemoteWrite})
	writesTo(t, ini, res, "by the w", w.Remote(0), w.STag())
	res.registers(fast, iwarp.Registration{Memory: [][]byte{pages[:8]}, Access: iwarp.RemoteWrite, Private: true})
	writesTo(t, ini, res, "by a req", fast.Remote(0), fast.STag())
	if string(pages[:8]) != "by a req" || string(pages[n-8:]) != "by the w" {
		t.Errorf("%q %q", pages[:8], pages[n-8:])
	}
	must(t, fast.Deregister())
	must(t, mr.Deregister())
	must(t, syscall.Munmap(pages))
	refusedWrite(t, ini, res, mr.Remote(0), 0x1100)
}
