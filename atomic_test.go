package iwarp_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// words registers n words of 8 bytes, and returns them as what they are, too.
func sharedWords(e *rig.End, n int, a iwarp.Access) (*iwarp.MR, []uint64) {
	e.T.Helper()
	w := make([]uint64, n)
	mr, err := e.PD.Register(unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n), a)
	rig.Must(e.T, err)
	return mr, w
}

// TestAtomics adds to a word of the peer's, and compares and swaps it, in one call and posted.
//
// Proves A09, A11, A12.
func TestAtomics(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		mr, w := sharedWords(res, 2, iwarp.RemoteAtomic)
		at := mr.Remote(8)
		if old, err := ini.FetchAdd(rig.Within(t), at, 5); err != nil || old != 0 {
			t.Errorf("was %d: %v", old, err)
		}
		if old, err := ini.CompareSwap(rig.Within(t), at, 4, 1); err != nil || old != 5 {
			t.Errorf("was %d: %v", old, err)
		}
		if old, err := ini.CompareSwap(rig.Within(t), at, 5, 0xff_ffffffff); err != nil || old != 5 {
			t.Errorf("was %d: %v", old, err)
		}
		back, result := sharedWords(ini, 2, iwarp.LocalWrite)
		ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpFetchAdd, Remote: at, Add: 1<<32 | 1,
			Masks: &iwarp.Masks{Add: 1 << 31}, Unsignaled: true})
		ini.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpCompareSwap, Remote: at, Compare: 0x100, Swap: math.MaxUint64,
			Masks: &iwarp.Masks{Compare: 0xf00, Swap: 7}, SGL: []iwarp.SGE{back.Slice(0, 8)}})
		ini.MustPost(&iwarp.SendWR{ID: 3, Op: iwarp.OpFetchAdd, Remote: at, SGL: []iwarp.SGE{back.Slice(8, 8)}})
		if wc := ini.WantSent(iwarp.OpCompareSwap, 2, iwarp.StatusSuccess); wc.Original != 0x100_00000000 ||
			wc.Length != iwarp.AtomicLen {
			t.Errorf("%#x, %d bytes", wc.Original, wc.Length)
		}
		if wc := ini.WantSent(iwarp.OpFetchAdd, 3, iwarp.StatusSuccess); wc.Original != 0x100_00000000 {
			t.Errorf("%#x", wc.Original)
		}
		ini.Look()
		res.Look()
		if result[0] != 0x100_00000000 || result[1] != result[0] || atomic.LoadUint64(&w[1]) != result[0] || w[0] != 0 {
			t.Errorf("results %#x, memory %#x", result, w)
		}
		if sent, answered := ini.Stats().Sent[rdmap.OpAtomicRequest],
			res.Stats().Sent[rdmap.OpAtomicResponse]; sent.Messages != 6 || answered.Messages != 6 {
			t.Errorf("%d requests, %d responses", sent.Messages, answered.Messages)
		}
		rig.Finish(t, ini, res)
	})
}

// TestImmediate has Writes tell the peer, and tells it without one.
//
// Proves A31, A38.
func TestImmediate(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		const n = 5000
		src, dst, in := ini.Filled(n, 1, 0), res.MR(n, iwarp.RemoteWrite), res.MR(4, iwarp.LocalWrite)
		for id := range uint64(3) {
			res.MustPostRecv(id, in.Slice(0, 4))
		}
		if got, err := ini.WriteImm(rig.Within(t), src.Slice(0, n), dst.Remote(0),
			0x0102030405060708); err != nil || got != n {
			t.Errorf("wrote %d: %v", got, err)
		}
		wc := res.WantReceived(0, iwarp.StatusSuccess)
		if !wc.HasImmediate || wc.Immediate != 0x0102030405060708 || wc.Written != n || wc.Length != 0 || wc.Solicited {
			t.Errorf("%+v", wc)
		}
		rig.Same(t, "Write with Immediate", dst, src)
		ini.MustPost(&iwarp.SendWR{ID: 7, Op: iwarp.OpImmediate, Immediate: 9, Solicited: true})
		ini.WantSent(iwarp.OpImmediate, 7, iwarp.StatusSuccess)
		if wc := res.WantReceived(1, iwarp.StatusSuccess); !wc.HasImmediate || wc.Immediate != 9 ||
			wc.Written != 0 || !wc.Solicited {
			t.Errorf("%+v", wc)
		}
		rig.Must(t, ini.Send(rig.Within(t), src.Slice(0, 4)))
		if wc := res.WantReceived(2, iwarp.StatusSuccess); wc.HasImmediate || wc.Length != 4 {
			t.Errorf("%+v", wc)
		}
		if s := ini.Stats().Sent; s[rdmap.OpImmediateData].Messages != 1 || s[rdmap.OpImmediateDataSE].Messages != 1 {
			t.Errorf("%+v", s)
		}
		rig.Finish(t, ini, res)
	})
}

// TestAtomicsTogether has two peers and the program itself add to one word, which two regions
// have: no addition is lost, and each was told another value.
//
// Proves A27.
func TestAtomicsTogether(t *testing.T) {
	const each = 300
	server := rig.NewEnd(t, iwarp.RNICConfig{})
	one, w := sharedWords(server, 2, iwarp.RemoteAtomic)
	two, err := server.PD.Register(one.Bytes(), iwarp.RemoteAtomic)
	rig.Must(t, err)
	var all sync.WaitGroup
	var seen [3][]uint64
	for i, mr := range []*iwarp.MR{one, two} {
		ini, _ := rig.Setup{Accept: iwarp.AcceptConfig{PD: server.PD}}.Connect(t)
		all.Go(func() {
			for range each {
				old, err := ini.FetchAdd(rig.Within(t), mr.Remote(8), 1)
				rig.Should(t, err)
				seen[i] = append(seen[i], old)
			}
		})
	}
	all.Go(func() {
		for range each {
			seen[2] = append(seen[2], atomic.AddUint64(&w[1], 1)-1)
		}
	})
	all.Wait()
	told := map[uint64]bool{}
	for _, s := range seen {
		for _, v := range s {
			told[v] = true
		}
	}
	if got := atomic.LoadUint64(&w[1]); got != 3*each || len(told) != 3*each {
		t.Errorf("%d additions and %d different values of %d", got, len(told), 3*each)
	}
}

// TestAtomicNotAllowed asks for what the peer's memory is not registered for.
//
// Proves A14, A16: the memory is as it was, the request ends with the reason, and so does the connection.
func TestAtomicNotAllowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		off    int
		access iwarp.Access
		status iwarp.Status
		code   rdmap.Code
		words  string
	}{
		{"no right", 0, iwarp.RemoteWrite | iwarp.RemoteRead, iwarp.StatusRemoteAccess,
			rdmap.CodeAccessRights, "RemoteAtomic"},
		{"not aligned", 4, iwarp.RemoteAtomic, iwarp.StatusRemoteOperation,
			rdmap.CodeCatastrophicStream, "no multiple of 8"},
		{"out of bounds", 16, iwarp.RemoteAtomic, iwarp.StatusRemoteAccess,
			rdmap.CodeBaseOrBounds, "not in the memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ini, res := rig.Connect(t)
			mr, w := sharedWords(res, 2, c.access)
			_, err := ini.FetchAdd(rig.Within(t), mr.Remote(c.off), 1)
			var failed *iwarp.WCError
			if !errors.As(err, &failed) || failed.Status != c.status || failed.Op != iwarp.OpFetchAdd ||
				!rig.Contains(err, c.words) {
				t.Errorf("the request: %v", err)
			}
			var end *iwarp.TerminateError
			if err := res.WantEnd(); !errors.As(err, &end) || end.Code != c.code {
				t.Errorf("the peer's end: %v", err)
			}
			if w[0] != 0 || w[1] != 0 {
				t.Errorf("memory %x", w)
			}
		})
	}
}

// TestExtensionsRefused posts what the operations of RFC 7306 have not, or others have not of
// them.
func TestExtensionsRefused(t *testing.T) {
	ini, _ := rig.Connect(t)
	own, ro := ini.MR(32, iwarp.LocalWrite), ini.MR(8, 0)
	for text, wr := range map[string]iwarp.SendWR{
		"inline data on FetchAdd":       {Op: iwarp.OpFetchAdd, Inline: make([]byte, 8)},
		"inline data on Immediate Data": {Op: iwarp.OpImmediate, Inline: []byte{}},
		"of which Immediate Data takes 0": {Op: iwarp.OpImmediate,
			SGL: []iwarp.SGE{own.Slice(0, 8)}},
		"of which CompareSwap takes 1": {Op: iwarp.OpCompareSwap,
			SGL: []iwarp.SGE{own.Slice(0, 8), own.Slice(8, 8)}},
		"16 bytes for the result of FetchAdd": {Op: iwarp.OpFetchAdd,
			SGL: []iwarp.SGE{own.Slice(0, 16)}},
		"0 bytes for the result of FetchAdd": {Op: iwarp.OpFetchAdd,
			SGL: []iwarp.SGE{own.Slice(0, 0)}},
		"without LocalWrite": {Op: iwarp.OpFetchAdd,
			SGL: []iwarp.SGE{ro.Slice(0, 8)}},
		"Solicited, which is for":                               {Op: iwarp.OpFetchAdd, Solicited: true},
		"Immediate, which is for":                               {Op: iwarp.OpWrite, Immediate: 1},
		"Add, which is for OpFetchAdd":                          {Op: iwarp.OpCompareSwap, Add: 1},
		"Compare or Swap, which are for":                        {Op: iwarp.OpFetchAdd, Swap: 1},
		"Masks, which are for":                                  {Op: iwarp.OpSend, Masks: &iwarp.Masks{}},
		"Invalidate, which is for OpSend and OpLocalInvalidate": {Op: iwarp.OpImmediate, Invalidate: 5},
		"Recv cannot be posted to a Send Queue":                 {Op: iwarp.OpRecv},
	} {
		if err := ini.PostSend(&wr); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestExtensionsOfVersion0 has a connection on which there are none.
//
// Proves A02: they are refused, and the connection goes on.
func TestExtensionsOfVersion0(t *testing.T) {
	ini, res := rig.Setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRevision0}}}.Connect(t)
	mr, _ := sharedWords(res, 1, iwarp.RemoteAtomic)
	_, addErr := ini.FetchAdd(rig.Within(t), mr.Remote(0), 1)
	_, immErr := ini.WriteImm(rig.Within(t), iwarp.SGE{}, iwarp.Remote{}, 1)
	for _, err := range []error{addErr, immErr, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpImmediate})} {
		if !errors.Is(err, iwarp.ErrNoExtensions) || !rig.Contains(err, "version 0") {
			t.Error(err)
		}
	}
	rig.Works(t, ini, res)
}

// TestImmediateInCalls waits for Immediate Data in one call, and takes back what has none.
//
// Proves A31.
func TestImmediateInCalls(t *testing.T) {
	ini, res := connectPatient(t)
	dst := res.MR(8, iwarp.RemoteWrite)
	got := make(chan iwarp.WC, 1)
	received := rig.DialInBackground(t, func() error {
		wc, err := res.Recv(rig.Within(t), dst.Slice(0, 8))
		got <- wc
		return err
	})
	rig.Until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	src := ini.Filled(4, 1, 0)
	if _, err := ini.WriteImm(rig.Within(t), src.Slice(0, 4), dst.Remote(4), 5); err != nil {
		t.Fatal(err)
	}
	rig.Must(t, <-received)
	if wc := <-got; !wc.HasImmediate || wc.Immediate != 5 || wc.Written != 4 || wc.Length != 0 ||
		!strings.Contains(wc.String(), "Immediate Data 0x5 after a Write of 4 bytes") {
		t.Errorf("%v", wc)
	}
}
