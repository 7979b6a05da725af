//go:build linux || darwin

package iwarp_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// vanishing is a region of 64 pages of which the last was taken back from the program.
func vanishing(e *rig.End, t *testing.T) (mr *iwarp.MR, there int) {
	t.Helper()
	page := os.Getpagesize()
	pages, err := syscall.Mmap(-1, 0, 64*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, syscall.Munmap(pages)) })
	mr, err = e.PD.RegisterOptions(pages, iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteRead | iwarp.RemoteAtomic, MayVanish: true})
	rig.Must(t, err)
	there = 63 * page
	rig.Must(t, syscall.Mprotect(pages[there:], syscall.PROT_NONE))
	return mr, there
}

// TestVanishedMemory takes memory away that a program has registered as such that may vanish: whatever reaches for it
// ends in an error, and the connection with it, and the process goes on.
func TestVanishedMemory(t *testing.T) {
	for name, c := range map[string]struct {
		ours   bool // the memory is the initiator's
		post   func(ini, res *rig.End, gone iwarp.SGE, remote iwarp.Remote)
		status iwarp.Status // of the initiator's request
	}{
		"Send": {true, func(ini, _ *rig.End, gone iwarp.SGE, _ iwarp.Remote) {
			ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpSend, SGL: []iwarp.SGE{gone}})
		}, iwarp.StatusLocalProtection},
		"Write": {true, func(ini, res *rig.End, gone iwarp.SGE, _ iwarp.Remote) {
			ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpWrite, SGL: []iwarp.SGE{gone},
				Remote: res.MR(1<<20, iwarp.RemoteWrite).Remote(0)})
		}, iwarp.StatusLocalProtection},
		"Read": {true, func(ini, res *rig.End, gone iwarp.SGE, _ iwarp.Remote) {
			ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead, SGL: []iwarp.SGE{gone},
				Remote: res.MR(1<<20, iwarp.RemoteRead).Remote(0)})
		}, iwarp.StatusLocalProtection},
		"peer's Read": {false, func(ini, _ *rig.End, gone iwarp.SGE, remote iwarp.Remote) {
			ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead,
				SGL: []iwarp.SGE{ini.MR(gone.Length, iwarp.LocalWrite).Slice(0, gone.Length)}, Remote: remote})
		}, iwarp.StatusFlushed},
		"peer's atomic": {false, func(ini, _ *rig.End, _ iwarp.SGE, remote iwarp.Remote) {
			remote.TO += 100000
			ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpFetchAdd,
				SGL: []iwarp.SGE{ini.MR(8, iwarp.LocalWrite).Slice(0, 8)}, Remote: remote, Add: 1})
		}, iwarp.StatusFlushed},
	} {
		t.Run(name, func(t *testing.T) {
			ini, res := rig.Connect(t)
			with := res
			if c.ours {
				with = ini
			}
			mr, there := vanishing(with, t)
			res.MustPostRecv(2, res.MR(1<<20, iwarp.LocalWrite).Slice(0, 1<<20))
			c.post(ini, res, mr.Slice(there-100000, 100096), mr.Remote(there-100000))
			if wc := rig.Next(t, ini.SendCQ()); wc.Status != c.status {
				t.Errorf("%v, want %v", wc.Err(), c.status)
			}
			if err := with.WantEnd(); !ended(err, rdmap.CodeLocalCatastrophic) {
				t.Errorf("ended by %v", err)
			}
		})
	}
}

// TestVanishedSink is the same for what the peer sends into such memory: by a Write, of which only its end is heard,
// and by a Send.
func TestVanishedSink(t *testing.T) {
	for _, op := range []iwarp.Op{iwarp.OpWrite, iwarp.OpSend} {
		t.Run(op.String(), func(t *testing.T) {
			ini, res := rig.Connect(t)
			mr, there := vanishing(res, t)
			res.MustPostRecv(2, mr.Slice(there-100000, 100100))
			src := ini.Filled(100100, 7, 0)
			ini.MustPost(&iwarp.SendWR{ID: 1, Op: op, SGL: []iwarp.SGE{src.Slice(0, src.Len())},
				Remote: remoteIf(op == iwarp.OpWrite, mr.Remote(there-100000))})
			wc := rig.Next(t, res.RecvCQ())
			want := iwarp.StatusFlushed
			if op == iwarp.OpSend {
				want = iwarp.StatusLocalProtection
			}
			if wc.Status != want {
				t.Errorf("receive: %v, want %v", wc.Err(), want)
			}
			if err := res.WantEnd(); !ended(err, rdmap.CodeLocalCatastrophic) {
				t.Errorf("ended by %v", err)
			}
		})
	}
}

func remoteIf(is bool, r iwarp.Remote) iwarp.Remote {
	if is {
		return r
	}
	return iwarp.Remote{}
}

// ended reports whether we ended a connection with that code.
func ended(err error, code rdmap.Code) bool {
	var te *iwarp.TerminateError
	return errors.As(err, &te) && te.Code == code
}

// TestVanishedForTheProgram: the program's own calls say so, too.
func TestVanishedForTheProgram(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	mr, there := vanishing(e, t)
	_, err := mr.ReadAt(make([]byte, 8), int64(there))
	rig.WantSaid(t, "ReadAt", err, iwarp.ErrBadState, "not mapped any more")
	_, err = mr.WriteAt(make([]byte, 8), int64(there-4))
	rig.WantSaid(t, "WriteAt", err, iwarp.ErrBadState, "not mapped any more")
	w, err := mr.Uint64(there)
	rig.WantSaid(t, "Uint64", err, iwarp.ErrBadState, "not mapped any more")
	rig.WantSaid(t, "Store", w.Store(1), iwarp.ErrBadState, "not mapped any more")
	n, err := mr.ReadAt(make([]byte, 8), int64(there-8))
	if n != 8 || err != nil {
		t.Errorf("beside it: %d, %v", n, err)
	}
}
