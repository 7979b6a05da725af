package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// The Region of an MR, and parts of it: what leaves it is refused.
func TestRegion(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	mr, err := e.PD.RegisterOptions(make([]byte, 100), iwarp.MROptions{Base: 1000})
	rig.Must(t, err)
	all := mr.Region()
	if all != (iwarp.Region{Remote: mr.Remote(0), Len: 100}) {
		t.Fatal(all)
	}
	for _, c := range [][2]int{{0, 100}, {40, 60}, {100, 0}, {7, 1}} {
		want := iwarp.Region{Remote: mr.Remote(c[0]), Len: c[1]}
		if part, err := all.Slice(c[0], c[1]); err != nil || part != want {
			t.Errorf("%v: %v, %v", c, part, err)
		}
	}
	part, err := all.Slice(40, 30)
	rig.Must(t, err)
	for _, c := range [][2]int{{0, 31}, {30, 1}, {31, 0}, {-1, 1}, {1, -1}, {math.MaxInt, 1}, {1, math.MaxInt}} {
		if got, err := part.Slice(c[0], c[1]); !errors.Is(err, iwarp.ErrInvalid) || got != (iwarp.Region{}) ||
			!rig.Contains(err, "of a Region of 30") {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := new(iwarp.MR).Region().Slice(0, 0); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "zero") {
		t.Error(err)
	}
}

// An MR has a Region while a peer can use it: not before the first registration, and not after Deregister.
func TestRegionWhileValid(t *testing.T) {
	ini, res := rig.Connect(t)
	mr := allocFast(ini, 1, 8)
	if r := mr.Region(); r != (iwarp.Region{}) {
		t.Errorf("with no registration: %v", r)
	}
	registers(ini, mr, iwarp.Registration{Memory: [][]byte{make([]byte, 8)}, Access: iwarp.RemoteRead, Key: 7})
	if r := mr.Region(); r != (iwarp.Region{Remote: iwarp.Remote{STag: mr.STagWithKey(7)}, Len: 8}) {
		t.Errorf("registered: %v", r)
	}
	rig.Must(t, mr.Deregister())
	if r := mr.Region(); r != (iwarp.Region{}) {
		t.Errorf("deregistered: %v", r)
	}
	rig.Finish(t, ini, res)
}

const long = 1<<20 + 7 // bytes that go in parts

// ReadAt and WriteAt reach all of a Region, by what io has for them, too.
func TestRemoteMemory(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		mr := res.MR(long, iwarp.RemoteRead|iwarp.RemoteWrite)
		at := ini.At(rig.Within(t), mr.Region())
		if at.Len() != long || at.Size() != long {
			t.Errorf("%d, %d", at.Len(), at.Size())
		}
		want := rig.Pattern(long, 3)
		n, err := io.Copy(io.NewOffsetWriter(at, 5), bytes.NewReader(want[5:1000]))
		if n != 995 || err != nil {
			t.Errorf("wrote %d: %v", n, err)
		}
		for _, part := range [][2]int{{0, 5}, {1000, long}} {
			n, err := at.WriteAt(want[part[0]:part[1]], int64(part[0]))
			if n != part[1]-part[0] || err != nil {
				t.Errorf("%v: wrote %d: %v", part, n, err)
			}
		}
		rig.Must(t, at.Flush(rig.Within(t)))
		res.Look()
		if !bytes.Equal(mr.Bytes(), want) {
			t.Error("wrote other bytes")
		}
		got := make([]byte, long+1)
		if n, err := at.ReadAt(got, 0); n != long || err != io.EOF || !bytes.Equal(got[:n], want) {
			t.Errorf("read %d: %v", n, err)
		}
		got, err = io.ReadAll(io.NewSectionReader(at, 7, at.Size()))
		if err != nil || !bytes.Equal(got, want[7:]) {
			t.Errorf("read %d: %v", len(got), err)
		}
		rig.Finish(t, ini, res)
	})
}

// Each access of a Region ends as io.ReaderAt and io.WriterAt demand, and what leaves it sends nothing.
func TestRemoteMemoryBounds(t *testing.T) {
	ini, res := rig.Connect(t)
	mr := res.Filled(100, 1, iwarp.RemoteRead|iwarp.RemoteWrite)
	part, err := mr.Region().Slice(10, 50)
	rig.Must(t, err)
	at := ini.At(rig.Within(t), part)
	for _, c := range []struct {
		len      int
		off      int64
		read     int
		readErr  error
		writeErr error
	}{
		{50, 0, 50, nil, nil}, {1, 49, 1, nil, nil}, {0, 0, 0, nil, nil}, {0, 50, 0, nil, nil},
		{51, 0, 50, io.EOF, iwarp.ErrInvalid}, {2, 49, 1, io.EOF, iwarp.ErrInvalid},
		{1, 50, 0, io.EOF, iwarp.ErrInvalid}, {1, math.MaxInt64, 0, io.EOF, iwarp.ErrInvalid},
		{1, -1, 0, iwarp.ErrInvalid, iwarp.ErrInvalid}, {0, -1, 0, iwarp.ErrInvalid, iwarp.ErrInvalid},
	} {
		p := make([]byte, c.len)
		n, err := at.ReadAt(p, c.off)
		if n != c.read || !errors.Is(err, c.readErr) || n > 0 && !bytes.Equal(p[:n], mr.Bytes()[10+c.off:][:n]) {
			t.Errorf("ReadAt of %d at %d: %d, %v", c.len, c.off, n, err)
		}
		before := ini.Stats().SentFPDUs
		n, err = at.WriteAt(p, c.off)
		if c.writeErr == nil && n != c.len || c.writeErr != nil && n != 0 || !errors.Is(err, c.writeErr) {
			t.Errorf("WriteAt of %d at %d: %d, %v", c.len, c.off, n, err)
		}
		if n == 0 && ini.Stats().SentFPDUs != before {
			t.Errorf("WriteAt of %d at %d has sent something", c.len, c.off)
		}
	}
	if _, err := at.WriteAt(make([]byte, 16), 40); !rig.Contains(err, "write: invalid argument: 16 bytes at offset 40 of "+
		"a Region of 50") {
		t.Error(err)
	}
	rig.Works(t, ini, res)
}

// all are the calls of a RemoteMemory.
func all(ctx context.Context, at *iwarp.RemoteMemory, n int) map[string]error {
	_, read := at.ReadAt(make([]byte, n), 0)
	_, write := at.WriteAt(make([]byte, n), 0)
	return map[string]error{"ReadAt": read, "WriteAt": write, "Flush": at.Flush(ctx)}
}

func wantNone(t *testing.T, got map[string]error) {
	t.Helper()
	for name, err := range got {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Calls without a QP, a Region, a connection or time are errors, and so are those of a QP that is closed.
func TestRemoteMemoryMistakes(t *testing.T) {
	ini, res := rig.Connect(t)
	ctx := rig.Within(t)
	there := res.MR(8, iwarp.RemoteRead|iwarp.RemoteWrite).Region()
	wantEach(t, all(ctx, nil, 8), iwarp.ErrInvalid, "RemoteMemory")
	wantEach(t, all(ctx, new(iwarp.QP).At(ctx, there), 8), iwarp.ErrInvalid, "QP")
	wantEach(t, all(ctx, ini.At(ctx, iwarp.Region{}), 8), iwarp.ErrInvalid, "the Region is zero")
	wantEach(t, all(ctx, ini.At(ctx, iwarp.Region{Remote: there.Remote, Len: -1}), 8), iwarp.ErrInvalid, "-1 bytes")
	gone := rig.Canceled(t)
	wantEach(t, all(gone, ini.At(gone, there), 8), context.Canceled, "")
	rig.Works(t, ini, res)
	before := ini.RNIC.Stats().MRs
	at := ini.At(ctx, there)
	wantNone(t, all(ctx, at, 8))
	if n := ini.RNIC.Stats().MRs; n != before+1 {
		t.Errorf("%d MRs more", n-before)
	}
	rig.CloseBoth(t, ini.QP, res.QP)
	wantEach(t, all(ctx, at, 8), net.ErrClosed, "")
	wantEach(t, all(ctx, ini.At(ctx, there), 8), net.ErrClosed, "")
	if n := ini.RNIC.Stats().MRs; n != before {
		t.Errorf("%d MRs are left", n-before)
	}
}

// A connection that carries no Reads has Writes, and says why nothing can be read or flushed.
func TestRemoteMemoryWithoutReads(t *testing.T) {
	ini, res := rig.Setup{Dialer: iwarp.Dialer{NoReads: true}}.Connect(t)
	at := ini.At(rig.Within(t), res.MR(long, iwarp.RemoteRead|iwarp.RemoteWrite).Region())
	if n, err := at.WriteAt(make([]byte, long), 0); n != long || err != nil {
		t.Errorf("wrote %d: %v", n, err)
	}
	for _, n := range []int{8, long} {
		errs := all(rig.Within(t), at, n)
		delete(errs, "WriteAt")
		wantEach(t, errs, iwarp.ErrNoReads, "ORD is 0")
	}
	rig.Works(t, res, ini)
}

// The calls take as many MRs as Limits leave, and name the limit if there is none.
func TestRemoteMemoryLimit(t *testing.T) {
	for _, left := range []int{0, 1, 3} {
		e := rig.NewEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: left + 1}})
		ini, res := rig.Setup{Dialer: iwarp.Dialer{PD: e.PD}}.Connect(t)
		e.MR(8, 0)
		at := ini.At(rig.Within(t), res.MR(long, iwarp.RemoteRead|iwarp.RemoteWrite).Region())
		errs := all(rig.Within(t), at, long)
		if left > 0 {
			wantNone(t, errs)
			continue
		}
		delete(errs, "Flush")
		wantEach(t, errs, iwarp.ErrLimit, "Memory Regions")
		rig.Must(t, at.Flush(rig.Within(t)))
	}
}

// Many goroutines share one RemoteMemory, a short Send Queue and an ORD of 2, and each has its own bytes.
func TestRemoteMemoryShared(t *testing.T) {
	const each = 700 << 10
	s := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{SendDepth: 3}}}
	s.Dialer.MPA.ORD = 2
	ini, res := s.Connect(t)
	const users = 20 // more than there are MRs for
	at := ini.At(rig.Within(t), res.MR(users*each, iwarp.RemoteRead|iwarp.RemoteWrite).Region())
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			want, got := rig.Pattern(each, byte(i)), make([]byte, each)
			_, err := at.WriteAt(want, int64(i*each))
			rig.Should(t, err)
			if _, err = at.ReadAt(got, int64(i*each)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("goroutine %d: %v", i, err)
			}
		})
	}
	all.Wait()
	rig.Works(t, ini, res)
}

// A Region that says more than the peer has ends the connection there, which the error tells.
func TestRemoteMemoryBeyond(t *testing.T) {
	for name, call := range map[string]func(at *iwarp.RemoteMemory) (int, error){
		"read": func(at *iwarp.RemoteMemory) (int, error) { return at.ReadAt(make([]byte, long), 0) },
		"written": func(at *iwarp.RemoteMemory) (int, error) {
			n, err := at.WriteAt(make([]byte, long), 0)
			if err == nil {
				return 0, at.Flush(t.Context())
			}
			return min(n, 0), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ini, res := rig.Connect(t)
			there := res.MR(long-1, iwarp.RemoteRead|iwarp.RemoteWrite).Region()
			there.Len++
			n, err := call(ini.At(rig.Within(t), there))
			var end *iwarp.TerminateError
			if !errors.As(err, &end) || !end.Remote || n >= long {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
}

// A WriteAt whose request cannot be posted leaves its MR to the next.
func TestRemoteMemoryNotPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := rig.NewEnd(t, iwarp.RNICConfig{})
		qp := rig.NewQP(t, e.PD, iwarp.QPConfig{SendDepth: 1})
		rig.Must(t, qp.PostSend(&iwarp.SendWR{}))
		for range 3 {
			at := qp.At(soon(t), iwarp.Region{Remote: iwarp.Remote{STag: 5}, Len: 8})
			if n, err := at.WriteAt(make([]byte, 8), 0); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with a full queue: %d, %v", n, err)
			}
			if n := e.RNIC.Stats().MRs; n != 1 {
				t.Errorf("%d MRs", n)
			}
		}
	})
}

// A ReadAt in parts has as many Reads under way as the ORD.
func TestReadAtHeedsORD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(iwarp.Dialer)
		d.MPA.ORD = 2
		qp := initiateOverPipe(t, d, iwarp.QPConfig{})
		read := rig.DialInBackground(t, func() error {
			_, err := qp.At(t.Context(), iwarp.Region{Remote: iwarp.Remote{STag: 5}, Len: long}).ReadAt(make([]byte, long), 0)
			return err
		})
		synctest.Wait()
		if n := qp.Query().Sends; n != 2 {
			t.Errorf("%d Reads are under way", n)
		}
		rig.Must(t, qp.Abort())
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// initiateOverPipe returns a QP that has a connection, on which its peer does nothing.
func initiateOverPipe(t *testing.T, d *iwarp.Dialer, cfg iwarp.QPConfig) *iwarp.QP {
	t.Helper()
	qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), cfg)
	a, b := rig.NewPipe(t)
	connected := rig.DialInBackground(t, func() error { return d.InitiateQP(t.Context(), qp, a, nil) })
	p := rig.NewPeer(t, b)
	p.WantFrame(mpa.KeyRequest)
	p.Send(rig.Frame(rig.Reply(2)))
	rig.Must(t, <-connected)
	return qp
}
