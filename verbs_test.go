package iwarp_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestOperations posts every operation that RDMAP has and looks at what both
// consumers are told of it.
//
// Proves P03, P33.
func TestOperations(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		src, dst := ini.Filled(100, 1, iwarp.LocalWrite), res.MR(100, iwarp.RemoteWrite|iwarp.RemoteRead)
		bound := func() *iwarp.MR {
			mr, err := res.PD.RegisterOptions(make([]byte, 10), iwarp.MROptions{Access: iwarp.RemoteRead, QP: res.QP})
			rig.Must(t, err)
			return mr
		}
		mr5, mr6 := bound(), bound()
		for _, c := range []struct {
			name string
			wr   iwarp.SendWR
			op   rdmap.Opcode
			want iwarp.WC // at the Responder
		}{
			{"Send", iwarp.SendWR{}, rdmap.OpSend, iwarp.WC{Length: 100}},
			{"Send with SE", iwarp.SendWR{Solicited: true}, rdmap.OpSendSE, iwarp.WC{Length: 100, Solicited: true}},
			{"Send with Invalidate", iwarp.SendWR{Invalidate: mr5.STag()}, rdmap.OpSendInvalidate,
				iwarp.WC{Length: 100, Invalidated: mr5.STag()}},
			{"Send with both", iwarp.SendWR{Invalidate: mr6.STag(), Solicited: true}, rdmap.OpSendSEInvalidate,
				iwarp.WC{Length: 100, Invalidated: mr6.STag(), Solicited: true}},
		} {
			res.MustPostRecv(2, dst.Slice(0, 100))
			c.wr.ID, c.wr.Op, c.wr.SGL = 1, iwarp.OpSend, []iwarp.SGE{src.Slice(0, 100)}
			ini.MustPost(&c.wr)
			ini.WantSent(iwarp.OpSend, 1, iwarp.StatusSuccess)
			got := res.WantReceived(2, iwarp.StatusSuccess)
			if got.Length != c.want.Length || got.Solicited != c.want.Solicited ||
				got.Invalidated != c.want.Invalidated || got.QP != res.QP {
				t.Errorf("%s: completed with %+v", c.name, got)
			}
			if n := ini.Stats().Sent[c.op]; n.Messages != 1 || n.Bytes != 100 {
				t.Errorf("%s: counted %+v", c.name, n)
			}
			rig.Same(t, c.name, dst, src)
		}
		if mr5.Valid() || mr6.Valid() {
			t.Error("a region is still valid after its invalidation")
		}
		writeThenRead(t, ini, res, src)
		rig.Finish(t, ini, res)
	})
}

// writeThenRead posts a Write and a Read of the same bytes.
func writeThenRead(t *testing.T, ini, res *rig.End, src *iwarp.MR) {
	t.Helper()
	n := src.Len()
	away, back := res.MR(n, iwarp.RemoteWrite|iwarp.RemoteRead), ini.MR(n, iwarp.LocalWrite)
	ini.MustPost(&iwarp.SendWR{ID: 3, Op: iwarp.OpWrite, SGL: []iwarp.SGE{src.Slice(0, n)}, Remote: away.Remote(0)})
	ini.MustPost(&iwarp.SendWR{ID: 4, Op: iwarp.OpRead, SGL: []iwarp.SGE{back.Slice(0, n)}, Remote: away.Remote(0)})
	ini.WantSent(iwarp.OpWrite, 3, iwarp.StatusSuccess)
	if wc := ini.WantSent(iwarp.OpRead, 4, iwarp.StatusSuccess); wc.Length != n {
		t.Errorf("read %d bytes", wc.Length)
	}
	rig.Same(t, "Write and Read", back, src)
	var wc [1]iwarp.WC
	if res.SendCQ().Poll(wc[:]) != 0 {
		t.Errorf("the Responder was told of a Write or a Read: %+v", wc[0])
	}
}

// TestScatterGather sends from several places to several places.
func TestScatterGather(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		src, dst := ini.Filled(1000, 1, 0), res.MR(1000, iwarp.LocalWrite)
		res.MustPostRecv(1, dst.Slice(500, 10), dst.Slice(0, 0), dst.Slice(0, 300), dst.Slice(600, 400))
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend,
			SGL: []iwarp.SGE{src.Slice(0, 5), src.Slice(5, 400), src.Slice(405, 0), src.Slice(405, 195)}})
		if wc := res.WantReceived(1, iwarp.StatusSuccess); wc.Length != 600 {
			t.Errorf("received %d bytes", wc.Length)
		}
		got := string(dst.Bytes()[500:510]) + string(dst.Bytes()[:300]) + string(dst.Bytes()[600:890])
		if got != string(src.Bytes()[:600]) {
			t.Error("the bytes differ")
		}
	})
}

// TestInline sends bytes that need no region and may be changed at once.
func TestInline(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		dst := res.MR(18, iwarp.LocalWrite)
		b := []byte("inline")
		for i := range 3 {
			res.MustPostRecv(uint64(i), dst.Slice(6*i, 6))
		}
		for i := range 3 {
			b[5] = byte('0' + i)
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: b, Unsignaled: true})
		}
		for i := range 3 {
			wc := res.WantReceived(uint64(i), iwarp.StatusSuccess)
			if wc.Length != 6 {
				t.Errorf("received %d bytes", wc.Length)
			}
		}
		if got := string(dst.Bytes()); got != "inlin0inlin1inlin2" {
			t.Errorf("got %q", got)
		}
		if wc := [1]iwarp.WC{}; ini.SendCQ().Poll(wc[:]) != 0 {
			t.Errorf("an unsignaled Send completed: %+v", wc[0])
		}
	})
}

// TestRefusedPosts refuses what makes no sense, and changes nothing by it.
func TestRefusedPosts(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		mr := ini.MR(10, iwarp.LocalWrite)
		sge := mr.Slice(0, 10)
		for _, c := range []struct {
			name string
			wr   iwarp.SendWR
		}{
			{"too many elements", iwarp.SendWR{SGL: make([]iwarp.SGE, iwarp.MaxSGE+1)}},
			{"a Read into two places that invalidates", iwarp.SendWR{Op: iwarp.OpRead, Target: mr, SGL: []iwarp.SGE{sge, sge}}},
			{"a Read into inline data", iwarp.SendWR{Op: iwarp.OpRead, Inline: []byte("x")}},
			{"both kinds of data", iwarp.SendWR{SGL: []iwarp.SGE{sge}, Inline: []byte("x")}},
			{"a receive", iwarp.SendWR{Op: iwarp.OpRecv}},
			{"no region to invalidate", iwarp.SendWR{Op: iwarp.OpLocalInvalidate}},
			{"a negative length", iwarp.SendWR{SGL: []iwarp.SGE{mr.Slice(0, -1)}}},
			{"a negative offset", iwarp.SendWR{SGL: []iwarp.SGE{mr.Slice(-1, 1)}}},
		} {
			if err := ini.PostSend(&c.wr); !errors.Is(err, iwarp.ErrInvalid) ||
				!strings.HasPrefix(err.Error(), "iwarp: post send: invalid argument") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if err := ini.PostSend(&iwarp.SendWR{Inline: make([]byte, 257)}); err == nil ||
			!strings.Contains(err.Error(), "MaxInline") {
			t.Errorf("too much inline data: %v", err)
		}
		if err := ini.PostRecv(&iwarp.RecvWR{SGL: make([]iwarp.SGE, iwarp.MaxSGE+1)}); !errors.Is(err,
			iwarp.ErrInvalid) {
			t.Errorf("a receive with too many elements: %v", err)
		}
		rig.Works(t, ini, res)
	})
}

// TestQueueFull fills both queues. A request keeps its place until its completion
// is polled.
//
// Proves Z24.
func TestQueueFull(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		cfg := iwarp.QPConfig{SendDepth: 3, RecvDepth: 2}
		s.Dialer, s.Accept = iwarp.Dialer{QP: cfg}, iwarp.AcceptConfig{QP: cfg}
		ini, res := s.Connect(t)
		mr := res.MR(8, iwarp.LocalWrite)
		for i := range 2 {
			res.MustPostRecv(uint64(i), mr.Slice(0, 8))
		}
		recv := iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, 8)}}
		if err := res.PostRecv(&recv); !errors.Is(err, iwarp.ErrQueueFull) {
			t.Errorf("a third receive: %v", err)
		}
		write := iwarp.SendWR{Op: iwarp.OpWrite}
		for range 3 {
			ini.MustPost(&write)
		}
		if err := ini.PostSend(&write); !errors.Is(err, iwarp.ErrQueueFull) {
			t.Errorf("a fourth Write: %v", err)
		}
		ini.WantSent(iwarp.OpWrite, 0, iwarp.StatusSuccess)
		ini.MustPost(&write)
		ini.WantSent(iwarp.OpWrite, 0, iwarp.StatusSuccess)
		for i := range 2 {
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
			res.WantReceived(uint64(i), iwarp.StatusSuccess)
			rig.Until(t, func() bool { return ini.Query().Sends == 0 }, "the end of the Send here")
			rig.Should(t, res.PostRecv(&recv))
		}
	})
}

// TestOneCall uses the forms that wait, from both sides at once.
func TestOneCall(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		s.Accept.QP = patient()
		ini, res := s.Connect(t)
		ctx := rig.Within(t)
		src, dst := ini.Filled(5000, 1, 0), res.MR(5000, iwarp.RemoteWrite|iwarp.RemoteRead)
		received := make(chan iwarp.WC, 1)
		posted := make(chan struct{})
		go func() {
			close(posted)
			wc, err := res.Recv(ctx, dst.Slice(0, 5000))
			rig.Should(t, err)
			received <- wc
		}()
		<-posted
		rig.Until(t, func() bool { return res.Query().Receives == 1 }, "the receive")
		rig.Must(t, ini.Send(ctx, src.Slice(0, 4000)))
		if wc := <-received; wc.Length != 4000 {
			t.Errorf("received %d bytes", wc.Length)
		}
		if n, err := ini.Write(ctx, src.Slice(0, 5000), dst.Remote(0)); n != 5000 || err != nil {
			t.Errorf("wrote %d bytes (%v)", n, err)
		}
		back := ini.MR(1000, iwarp.LocalWrite)
		if n, err := ini.Read(ctx, back.Slice(0, 1000), dst.Remote(4000)); n != 1000 || err != nil {
			t.Errorf("read %d bytes (%v)", n, err)
		}
		if string(back.Bytes()) != string(src.Bytes()[4000:]) {
			t.Error("the bytes differ")
		}
		if wc := [1]iwarp.WC{}; ini.SendCQ().Poll(wc[:])+res.RecvCQ().Poll(wc[:]) != 0 {
			t.Errorf("a one-call form completed in the CQ: %+v", wc[0])
		}
	})
}

// TestFence holds a Send back until the Read before it is complete.
func TestFence(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := s.Connect(t)
		sink, src := ini.MR(100000, iwarp.LocalWrite), res.Filled(100000, 4, iwarp.RemoteRead)
		dst := res.MR(8, iwarp.LocalWrite)
		res.MustPostRecv(9, dst.Slice(0, 8))
		ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead,
			SGL: []iwarp.SGE{sink.Slice(0, 100000)}, Remote: src.Remote(0)})
		ini.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: []byte("done"), Fence: true})
		res.WantReceived(9, iwarp.StatusSuccess)
		read := make([]byte, 100000) // by ReadAt: the race detector does not see what the peer's receiving proves
		if _, err := sink.ReadAt(read, 0); err != nil || !bytes.Equal(read, src.Bytes()) {
			t.Errorf("the fenced Send came before all was read (%v)", err)
		}
		ini.WantSent(iwarp.OpRead, 1, iwarp.StatusSuccess)
		ini.WantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
	})
}

// TestResponderFirst has the Responder send before the Initiator's consumer has
// sent anything, which peer-to-peer allows.
//
// Proves E12.
func TestResponderFirst(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini := rig.NewEnd(t, iwarp.RNICConfig{})
		s.Dialer = iwarp.Dialer{PD: ini.PD, Prepare: ini.TwoReceives}
		_, res := s.Connect(t)
		res.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("first")})
		if wc := ini.WantReceived(0, iwarp.StatusSuccess); wc.Length != 5 {
			t.Errorf("received %d bytes", wc.Length)
		}
	})
}

// TestClientFirst has the Responder of a client-server connection post a Send at
// once: it leaves when the client's first message has arrived.
//
// Proves E12.
func TestClientFirst(t *testing.T) {
	overStreams(t, func(t *testing.T, s rig.Setup) {
		ini := rig.NewEnd(t, iwarp.RNICConfig{})
		s.Dialer = iwarp.Dialer{PD: ini.PD, Prepare: ini.TwoReceives, MPA: mpa.Offer{ClientServer: true}}
		_, res := s.Connect(t)
		res.MustPostRecv(5, res.MR(8, iwarp.LocalWrite).Slice(0, 8))
		res.MustPost(&iwarp.SendWR{ID: 6, Op: iwarp.OpSend, Inline: []byte("hello")})
		if s := res.Stats(); s.SentFPDUs != 0 {
			t.Error("the Responder has sent before it received")
		}
		ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hi"), Unsignaled: true})
		res.WantReceived(5, iwarp.StatusSuccess)
		ini.WantReceived(0, iwarp.StatusSuccess)
	})
}
