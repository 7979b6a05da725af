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
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// words registers n words of 8 octets, and returns them as what they are, too.
func (e *end) words(n int, a iwarp.Access) (*iwarp.MR, []uint64) {
	e.t.Helper()
	w := make([]uint64, n)
	mr, err := e.pd.Register(unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n), a)
	must(e.t, err)
	return mr, w
}

// TestAtomics adds to a word of the peer's, and compares and swaps it, in one call and posted.
//
// Proves X03.
func TestAtomics(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		mr, w := res.words(2, iwarp.RemoteAtomic)
		at := mr.Remote(8)
		if old, err := ini.FetchAdd(within(t), at, 5); err != nil || old != 0 {
			t.Errorf("was %d: %v", old, err)
		}
		if old, err := ini.CompareSwap(within(t), at, 4, 1); err != nil || old != 5 {
			t.Errorf("was %d: %v", old, err)
		}
		if old, err := ini.CompareSwap(within(t), at, 5, 0xff_ffffffff); err != nil || old != 5 {
			t.Errorf("was %d: %v", old, err)
		}
		back, result := ini.words(2, iwarp.LocalWrite)
		ini.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpFetchAdd, Remote: at, Add: 1<<32 | 1, Masks: &iwarp.Masks{Add: 1 << 31}, Unsignaled: true})
		ini.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpCompareSwap, Remote: at, Compare: 0x100, Swap: math.MaxUint64, Masks: &iwarp.Masks{Compare: 0xf00, Swap: 7}, SGL: []iwarp.SGE{back.Slice(0, 8)}})
		ini.post(&iwarp.SendWR{ID: 3, Op: iwarp.OpFetchAdd, Remote: at, SGL: []iwarp.SGE{back.Slice(8, 8)}})
		if wc := ini.wantSent(iwarp.OpCompareSwap, 2, iwarp.StatusSuccess); wc.Original != 0x100_00000000 || wc.Length != iwarp.AtomicLen {
			t.Errorf("%#x, %d octets", wc.Original, wc.Length)
		}
		if wc := ini.wantSent(iwarp.OpFetchAdd, 3, iwarp.StatusSuccess); wc.Original != 0x100_00000000 {
			t.Errorf("%#x", wc.Original)
		}
		ini.look()
		res.look()
		if result[0] != 0x100_00000000 || result[1] != result[0] || atomic.LoadUint64(&w[1]) != result[0] || w[0] != 0 {
			t.Errorf("results %#x, memory %#x", result, w)
		}
		if sent, answered := ini.Stats().Sent[rdmap.OpAtomicRequest], res.Stats().Sent[rdmap.OpAtomicResponse]; sent.Messages != 6 || answered.Messages != 6 {
			t.Errorf("%d requests, %d responses", sent.Messages, answered.Messages)
		}
		finish(t, ini, res)
	})
}

// TestImmediate has Writes tell the peer, and tells it without one.
//
// Proves X03.
func TestImmediate(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		const n = 5000
		src, dst, in := ini.filled(n, 1, 0), res.mr(n, iwarp.RemoteWrite), res.mr(4, iwarp.LocalWrite)
		for id := range uint64(3) {
			res.postRecv(id, in.Slice(0, 4))
		}
		if got, err := ini.WriteImm(within(t), src.Slice(0, n), dst.Remote(0), 0x0102030405060708); err != nil || got != n {
			t.Errorf("wrote %d: %v", got, err)
		}
		wc := res.wantReceived(0, iwarp.StatusSuccess)
		if !wc.HasImmediate || wc.Immediate != 0x0102030405060708 || wc.Written != n || wc.Length != 0 || wc.Solicited {
			t.Errorf("%+v", wc)
		}
		same(t, "Write with Immediate", dst, src)
		ini.post(&iwarp.SendWR{ID: 7, Op: iwarp.OpImmediate, Immediate: 9, Solicited: true})
		ini.wantSent(iwarp.OpImmediate, 7, iwarp.StatusSuccess)
		if wc := res.wantReceived(1, iwarp.StatusSuccess); !wc.HasImmediate || wc.Immediate != 9 || wc.Written != 0 || !wc.Solicited {
			t.Errorf("%+v", wc)
		}
		must(t, ini.Send(within(t), src.Slice(0, 4)))
		if wc := res.wantReceived(2, iwarp.StatusSuccess); wc.HasImmediate || wc.Length != 4 {
			t.Errorf("%+v", wc)
		}
		if s := ini.Stats().Sent; s[rdmap.OpImmediateData].Messages != 1 || s[rdmap.OpImmediateDataSE].Messages != 1 {
			t.Errorf("%+v", s)
		}
		finish(t, ini, res)
	})
}

// TestAtomicsTogether has two peers and the program itself add to one word, which two regions
// have: no addition is lost, and each was told another value.
//
// Proves X03.
func TestAtomicsTogether(t *testing.T) {
	const each = 300
	server := newEnd(t, iwarp.RNICConfig{})
	one, w := server.words(2, iwarp.RemoteAtomic)
	two, err := server.pd.Register(one.Bytes(), iwarp.RemoteAtomic)
	must(t, err)
	var all sync.WaitGroup
	var seen [3][]uint64
	for i, mr := range []*iwarp.MR{one, two} {
		ini, _ := setup{accept: iwarp.AcceptConfig{PD: server.pd}}.connect(t)
		all.Go(func() {
			for range each {
				old, err := ini.FetchAdd(within(t), mr.Remote(8), 1)
				should(t, err)
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
// Proves X03: the memory is as it was, the request ends with the reason, and so does the connection.
func TestAtomicNotAllowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		off    int
		access iwarp.Access
		status iwarp.Status
		code   rdmap.Code
		words  string
	}{
		{"no right", 0, iwarp.RemoteWrite | iwarp.RemoteRead, iwarp.StatusRemoteAccess, rdmap.CodeAccessRights, "RemoteAtomic"},
		{"not aligned", 4, iwarp.RemoteAtomic, iwarp.StatusRemoteOperation, rdmap.CodeCatastrophicStream, "no multiple of 8"},
		{"out of bounds", 16, iwarp.RemoteAtomic, iwarp.StatusRemoteAccess, rdmap.CodeBaseOrBounds, "not in the memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ini, res := connect(t)
			mr, w := res.words(2, c.access)
			_, err := ini.FetchAdd(within(t), mr.Remote(c.off), 1)
			var failed *iwarp.WCError
			if !errors.As(err, &failed) || failed.Status != c.status || failed.Op != iwarp.OpFetchAdd || !contains(err, c.words) {
				t.Errorf("the request: %v", err)
			}
			var end *iwarp.TerminateError
			if err := res.wantEnd(); !errors.As(err, &end) || end.Code != c.code {
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
//
// Proves X03.
func TestExtensionsRefused(t *testing.T) {
	ini, _ := connect(t)
	own, ro := ini.mr(32, iwarp.LocalWrite), ini.mr(8, 0)
	for text, wr := range map[string]iwarp.SendWR{
		"inline data on FetchAdd":                               {Op: iwarp.OpFetchAdd, Inline: make([]byte, 8)},
		"inline data on Immediate Data":                         {Op: iwarp.OpImmediate, Inline: []byte{}},
		"of which Immediate Data takes 0":                       {Op: iwarp.OpImmediate, SGL: []iwarp.SGE{own.Slice(0, 8)}},
		"of which CompareSwap takes 1":                          {Op: iwarp.OpCompareSwap, SGL: []iwarp.SGE{own.Slice(0, 8), own.Slice(8, 8)}},
		"16 octets for the result of FetchAdd":                  {Op: iwarp.OpFetchAdd, SGL: []iwarp.SGE{own.Slice(0, 16)}},
		"0 octets for the result of FetchAdd":                   {Op: iwarp.OpFetchAdd, SGL: []iwarp.SGE{own.Slice(0, 0)}},
		"without LocalWrite":                                    {Op: iwarp.OpFetchAdd, SGL: []iwarp.SGE{ro.Slice(0, 8)}},
		"Solicited, which only":                                 {Op: iwarp.OpFetchAdd, Solicited: true},
		"Immediate, which is for":                               {Op: iwarp.OpWrite, Immediate: 1},
		"Add, which is for OpFetchAdd":                          {Op: iwarp.OpCompareSwap, Add: 1},
		"Compare or Swap, which are for":                        {Op: iwarp.OpFetchAdd, Swap: 1},
		"Masks, which are for":                                  {Op: iwarp.OpSend, Masks: &iwarp.Masks{}},
		"Invalidate, which is for OpSend and OpLocalInvalidate": {Op: iwarp.OpImmediate, Invalidate: 5},
		"Recv cannot be posted to a Send Queue":                 {Op: iwarp.OpRecv},
	} {
		if err := ini.PostSend(&wr); !errors.Is(err, iwarp.ErrInvalid) || !contains(err, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestExtensionsOfVersion0 has a connection on which there are none.
//
// Proves X03: they are refused, and the connection goes on.
func TestExtensionsOfVersion0(t *testing.T) {
	ini, res := setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRevision0}}}.connect(t)
	mr, _ := res.words(1, iwarp.RemoteAtomic)
	_, addErr := ini.FetchAdd(within(t), mr.Remote(0), 1)
	_, immErr := ini.WriteImm(within(t), iwarp.SGE{}, iwarp.Remote{}, 1)
	for _, err := range []error{addErr, immErr, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpImmediate})} {
		if !errors.Is(err, iwarp.ErrNoExtensions) || !contains(err, "version 0") {
			t.Error(err)
		}
	}
	works(t, ini, res)
}

// TestExtensionsUnknown asks peers that do not know RFC 7306, as their scripts do not.
//
// Proves X03: their Terminate is surfaced, with what to do.
func TestExtensionsUnknown(t *testing.T) {
	for _, name := range []string{"siw", "cxgb4"} {
		e, err := respondAs(t, peerRow(t, name)).dial(t, iwarp.Dialer{Preset: lookup(t, name)})
		must(t, err)
		_, err = e.FetchAdd(within(t), iwarp.Remote{STag: 5}, 0)
		if !errors.Is(err, iwarp.ErrClosed) || !contains(err, "does not seem to know the Atomic Operations and Immediate Data of RFC 7306") {
			t.Errorf("%s: %v", name, err)
		}
		if end := e.wantEnd(); !contains(end, "RFC 7306") {
			t.Errorf("%s: ended: %v", name, end)
		}
	}
}

// TestImmediateInCalls waits for Immediate Data in one call, and takes back what has none.
//
// Proves X03.
func TestImmediateInCalls(t *testing.T) {
	ini, res := connect(t)
	dst := res.mr(8, iwarp.RemoteWrite)
	got := make(chan iwarp.WC, 1)
	received := dialInBackground(t, func() error {
		wc, err := res.Recv(within(t), dst.Slice(0, 8))
		got <- wc
		return err
	})
	until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
	src := ini.filled(4, 1, 0)
	if _, err := ini.WriteImm(within(t), src.Slice(0, 4), dst.Remote(4), 5); err != nil {
		t.Fatal(err)
	}
	must(t, <-received)
	if wc := <-got; !wc.HasImmediate || wc.Immediate != 5 || wc.Written != 4 || wc.Length != 0 || !strings.Contains(wc.String(), "Immediate Data 0x5 after a Write of 4 octets") {
		t.Errorf("%v", wc)
	}
}
