package iwarp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestStrings prints what programs print in passing: numbers, states and addresses, and
// never a byte of memory.
func TestStrings(t *testing.T) {
	t.Parallel()
	ini, res := rig.Setup{}.Connect(t)
	rig.Must(t, res.PostRecv(&iwarp.RecvWR{}))
	secret := []byte("the secret of the house")
	mr, err := res.PD.Register(secret, iwarp.RemoteRead|iwarp.LocalWrite)
	rig.Must(t, err)
	srq, err := res.PD.CreateSRQ(iwarp.SRQConfig{Depth: 7})
	rig.Must(t, err)
	window, err := res.PD.AllocMW(iwarp.MWType1)
	rig.Must(t, err)
	for _, c := range []struct {
		value any
		want  string
	}{
		{res.QP, fmt.Sprintf("QP %d (RTS, %v with %v)", res.Num(), res.LocalAddr(), ini.LocalAddr())},
		{res.RecvCQ(), "CQ (0 of 256 completions, 1 QP)"},
		{srq, "SRQ (0 of 7 receives, 0 QPs)"},
		{mr, fmt.Sprintf("MR (STag %#08x, 23 bytes, LocalWrite|RemoteRead)", mr.STag())},
		{res.Negotiated(), fmt.Sprintf("Responder, RFC 6581, revision 2, markers off received and off sent, CRC on, IRD %d, ORD %d, peer-to-peer with RTR send|write|read, EMSS %d, MULPDU %d",
			res.Query().IRD, res.Query().ORD, res.Negotiated().EMSS, res.Negotiated().MULPDU)},
		{res.Query(), fmt.Sprintf("RTS, IRD %d, ORD %d, version 1, markers off received and off sent, permissive, MULPDU %d, outstanding: 0 send requests, 1 receive",
			res.Query().IRD, res.Query().ORD, res.Query().MULPDU)},
		{window, fmt.Sprintf("MW (type 1, STag %#08x, not bound)", window.STag())},
		{res.RNIC, "RNIC (permissive, 1 QP, 1 Listener)"},
		{iwarp.Access(0), "none"},
		{iwarp.RemoteWrite | iwarp.RemoteInvalidate | 0x80, "RemoteWrite|RemoteInvalidate|0x80"},
	} {
		for range 2 { // nothing stays locked
			if got := fmt.Sprint(c.value); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		}
	}
	if got := fmt.Sprintf("%v %+v", mr, mr.Slice(0, 4)); strings.Contains(got, "secret") {
		t.Errorf("the memory is in %q", got)
	}
	if err := mr.Deregister(); err != nil || !strings.HasSuffix(mr.String(), ", invalid)") {
		t.Errorf("%v (%v)", mr, err)
	}
	_ = ini.Close()
	_ = res.Close()
}

// TestListenerStrings prints a Listener and a Request, of which private data is no part.
func TestListenerStrings(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	rig.Must(t, err)
	dialed := rig.DialInBackground(t, func() error {
		_, err := (&iwarp.Dialer{MPA: mpa.Offer{IRD: 3, ORD: 4, PrivateData: []byte("secret")}}).Dial(rig.Within(t),
			"tcp", ln.Addr().String())
		return err
	})
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	if got, want := fmt.Sprintf("%v", req), fmt.Sprintf("Request (%v, RFC 6581, IRD 3, ORD 4)",
		req.RemoteAddr()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	up, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
	rig.Must(t, err)
	rig.Must(t, <-dialed)
	if got, want := fmt.Sprintf("%v, %v", ln, rnic),
		fmt.Sprintf("Listener (%v, 1 QP), RNIC (permissive, 1 QP, 1 Listener)", ln.Addr()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_ = up.Abort()
	rig.Must(t, ln.Close())
	rig.Must(t, rnic.Close())
	if got, want := fmt.Sprintf("%v, %v", ln, rnic),
		fmt.Sprintf("Listener (%v, 0 QPs, closed), RNIC (permissive, 0 QPs, 0 Listeners, closed)",
			ln.Addr()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRemoteOnTheWire(t *testing.T) {
	r := iwarp.Remote{TO: 0x0102030405060708, STag: 0x090a0b0c}
	want := []byte{
		1, 2, 3, 4, 5, 6, 7, 8, // TO
		9, 10, 11, 12, // STag
		0, 0, 0, 0, // reserved
	}
	b, err := r.MarshalBinary()
	if err != nil || !bytes.Equal(b, want) || len(b) != iwarp.RemoteLen {
		t.Fatalf("% x (%v)", b, err)
	}
	var again iwarp.Remote
	if err := again.UnmarshalBinary(b); err != nil || again != r {
		t.Errorf("%v (%v)", again, err)
	}
	want[15] = 1
	for _, bad := range [][]byte{nil, b[:15], append(b, 0), want} {
		if err := again.UnmarshalBinary(bad); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("% x: %v", bad, err)
		}
	}
}

func FuzzRemote(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r iwarp.Remote
		if r.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := r.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("% x became % x (%v)", b, again, err)
		}
	})
}

func TestRegionOnTheWire(t *testing.T) {
	r := iwarp.Region{Remote: iwarp.Remote{TO: 0x0102030405060708, STag: 0x090a0b0c}, Len: 0x0d0e0f}
	want := []byte{
		1, 2, 3, 4, 5, 6, 7, 8, // TO
		9, 10, 11, 12, // STag
		0, 0, 0, 0, // reserved
		0, 0, 0, 0, 0, 13, 14, 15, // length
	}
	b, err := r.MarshalBinary()
	if err != nil || !bytes.Equal(b, want) || len(b) != iwarp.RegionLen {
		t.Fatalf("% x (%v)", b, err)
	}
	if s := r.String(); s != "STag 0x090a0b0c TO 0x102030405060708, 855567 bytes" {
		t.Error(s)
	}
	again := iwarp.Region{Len: 1}
	for i, bad := range [][]byte{
		nil, b[:23], append(b[:24:24], 0),
		append(append(b[:15:15], 1), b[16:]...),    // a reserved bit
		make([]byte, 24),                           // no Remote
		append(b[:16:16], bytes.Repeat(ff, 8)...),  // a length beyond an int, and 64 bits of TO
		append(bytes.Repeat(ff, 8), b[8:]...),      // that wraps
		append(append(b[:16:16], 0x80), b[17:]...), // beyond an int alone
	} {
		if err := again.UnmarshalBinary(bad); !errors.Is(err, iwarp.ErrInvalid) || again != (iwarp.Region{Len: 1}) {
			t.Errorf("case %d: %v, %v", i, again, err)
		}
	}
	if err := again.UnmarshalBinary(b); err != nil || again != r {
		t.Errorf("%v (%v)", again, err)
	}
	for _, bad := range []iwarp.Region{{}, {Len: 5}, {Remote: r.Remote, Len: -1}} {
		if b, err := bad.MarshalBinary(); !errors.Is(err, iwarp.ErrInvalid) || len(b) > 0 {
			t.Errorf("%v: % x, %v", bad, b, err)
		}
	}
}

var ff = []byte{0xff}

func FuzzRegion(f *testing.F) {
	f.Add(append(bytes.Repeat(ff, 8), make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r iwarp.Region
		if r.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := r.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("% x became % x (%v)", b, again, err)
		}
		if _, err := r.Slice(0, r.Len); err != nil {
			t.Errorf("% x: %v", b, err)
		}
	})
}

func TestContext(t *testing.T) {
	type session struct{ name string }
	mine := &session{"mine"}
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{UserData: mine}}}.Connect(t)
	mr, err := res.QP.PD().Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	n, err := res.PostRecvs([]iwarp.RecvWR{{ID: 1, SGL: []iwarp.SGE{mr.Slice(0, 8)}}, {ID: 2},
		{ID: 3, SGL: make([]iwarp.SGE, iwarp.MaxSGE+1)}, {ID: 4}})
	if n != 2 || !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("posted %d (%v)", n, err)
	}
	rig.PostSmall(ini, 1)
	if wc := res.WantReceived(1, iwarp.StatusSuccess); wc.QP.UserData() != mine || res.UserData() != mine {
		t.Errorf("user data %v", wc.QP.UserData())
	}
}

func TestStatsAsJSON(t *testing.T) {
	ini, res := rig.Setup{}.Connect(t)
	mr, err := res.QP.PD().Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	rig.Must(t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, 8)}}))
	rig.PostSmall(ini, 1)
	res.WantReceived(0, iwarp.StatusSuccess)
	rig.PostSmall(ini, 1) // finds no receive
	_ = res.WantEnd()
	b, err := json.Marshal(res.Stats())
	rig.Must(t, err)
	var got struct {
		Received       map[string]iwarp.Traffic
		TerminatesSent map[string]uint64
		SentFPDUs      *uint64
	}
	rig.Must(t, json.Unmarshal(b, &got))
	if got.Received["Send"].Messages < 1 || len(got.TerminatesSent) != 1 || got.SentFPDUs == nil {
		t.Errorf("%s", b)
	}
	for code := range got.TerminatesSent {
		if !strings.Contains(code, "(0x") {
			t.Errorf("code %q", code)
		}
	}
}

// TestResizeCQ makes a CQ smaller and larger while completions wait in it, on every place
// in its ring.
func TestResizeCQ(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{CQEntries: 300}})
	cq := rig.NewCQ(t, rnic, 4)
	ini, _ := rig.Setup{Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic),
		QP: iwarp.QPConfig{SendCQ: cq, RecvCQ: rig.NewCQ(t, rnic, 128)}}}.Connect(t)
	next := uint64(0)
	post := func(n int) {
		for range n {
			ini.MustPost(&iwarp.SendWR{ID: next, Op: iwarp.OpWrite})
			next++
		}
	}
	polled := uint64(0)
	poll := func(n int) {
		t.Helper()
		for range n {
			ini.WantSent(iwarp.OpWrite, polled, iwarp.StatusSuccess)
			polled++
		}
	}
	for _, depth := range []int{4, 7, 3, 3, 9, 2} {
		post(2)
		if err := cq.Resize(depth); err != nil || cq.Depth() != depth {
			t.Fatalf("depth %d: %v", depth, err)
		}
		poll(1)
		if depth > 2 {
			post(1)
			poll(1)
		}
		poll(1)
	}
	post(2)
	if err := cq.Resize(1); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("below what waits: %v", err)
	}
	if err := cq.Resize(1000); !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	if n := rnic.Stats().CQEntries; n != 128+2 {
		t.Errorf("%d entries are counted", n)
	}
}

// TestResizeSRQ does the same to a Shared Receive Queue.
func TestResizeSRQ(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 4})
	ini, _ := s.Connect(t)
	id := uint64(0)
	for _, depth := range []int{5, 3, 3, 8, 2} {
		for range 2 {
			if _, err := s.SRQ.PostRecvs([]iwarp.RecvWR{{ID: id, SGL: []iwarp.SGE{s.MR.Slice(0, 8)}}}); err != nil {
				t.Fatal(err)
			}
			id++
		}
		if err := s.SRQ.Resize(depth); err != nil || s.SRQ.Query().Depth != depth || s.SRQ.Query().Receives != 2 {
			t.Fatalf("depth %d: %v, %d receives", depth, err, s.SRQ.Query().Receives)
		}
		rig.PostSmall(ini, 2)
		for i := range uint64(2) {
			if wc := rig.Next(t, s.CQ); wc.ID != id-2+i || wc.Status != iwarp.StatusSuccess {
				t.Errorf("depth %d: %+v", depth, wc)
			}
		}
	}
	postShared(s, t, 2)
	if err := s.SRQ.Resize(1); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("below what is in it: %v", err)
	}
	if n := s.RNIC.Stats().WorkRequests; n != 2+128 {
		t.Errorf("%d entries are counted", n)
	}
}
