package iwarp_test

import (
	"errors"
	"math"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestCheckLate: what is wrong with the memory of a request is no error of the post, but of the completion, and ends the connection.
//
// RDMA verbs 8: such errors are immediate ones or ones of the completion.
func TestCheckLate(t *testing.T) {
	elements := map[string]struct {
		of   func(e *end) iwarp.SGE
		want iwarp.Status
	}{
		"no MR":         {func(*end) iwarp.SGE { return iwarp.SGE{Length: 4} }, iwarp.StatusLocalProtection},
		"beyond its MR": {func(e *end) iwarp.SGE { return iwarp.SGE{MR: e.mr(4, iwarp.LocalWrite), Offset: 1, Length: 4} }, iwarp.StatusLocalProtection},
		"another PD":    {func(e *end) iwarp.SGE { return (&end{t: t, pd: newPD(t, e.rnic)}).mr(4, iwarp.LocalWrite).Slice(0, 4) }, iwarp.StatusLocalProtection},
		"deregistered MR": {func(e *end) iwarp.SGE {
			mr := e.mr(4, iwarp.LocalWrite)
			must(t, mr.Deregister())
			return mr.Slice(0, 4)
		}, iwarp.StatusLocalProtection},
		"not LocalWrite": {func(e *end) iwarp.SGE { return e.mr(4, 0).Slice(0, 4) }, iwarp.StatusLocalAccess},
	}
	for what, tt := range elements {
		for op, post := range map[string]func(ini *end){
			"Send": func(ini *end) { ini.post(&iwarp.SendWR{ID: 1, SGL: []iwarp.SGE{tt.of(ini)}}) },
			"Read": func(ini *end) { ini.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead, SGL: []iwarp.SGE{tt.of(ini)}}) },
		} {
			if op == "Send" && tt.want == iwarp.StatusLocalAccess {
				continue // it only reads
			}
			s := setup{}
			s.Dialer.QP.CheckLate = true
			ini, _ := s.connect(t)
			post(ini)
			if wc := next(t, ini.SendCQ()); wc.ID != 1 || wc.Status != tt.want {
				t.Errorf("a %s with %s: %v, want %v", op, what, wc.Status, tt.want)
			}
			ini.wantEnd()
		}
		s := setup{}
		s.accept.QP.CheckLate = true
		ini, res := s.connect(t)
		res.postRecv(2, tt.of(res))
		ini.post(&iwarp.SendWR{Inline: []byte("text")})
		res.wantReceived(2, tt.want)
		res.wantEnd()
	}
	ini, _ := setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{CheckLate: true}}}.connect(t)
	elsewhere := newEnd(t, iwarp.RNICConfig{}).mr(4, 0)
	for what, s := range map[string]iwarp.SGE{"an MR of another RNIC": elsewhere.Slice(0, 4), "-1 octets": {Length: -1}} {
		if err := ini.PostSend(&iwarp.SendWR{SGL: []iwarp.SGE{s}}); !errors.Is(err, iwarp.ErrInvalid) || !contains(err, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLateWraps: lengths whose sum no memory has are too long for a message, and never what is left of the sum.
func TestLateWraps(t *testing.T) {
	s := setup{}
	s.Dialer.QP.CheckLate, s.accept.QP.CheckLate = true, true
	ini, res := s.connect(t)
	src, dst := ini.filled(100, 3, iwarp.LocalWrite), res.mr(100, iwarp.RemoteWrite|iwarp.LocalWrite)
	all := func(mr *iwarp.MR) []iwarp.SGE {
		return []iwarp.SGE{{MR: mr, Length: math.MaxInt}, {MR: mr, Length: math.MaxInt}, {MR: mr, Length: 10}}
	}
	err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Remote: dst.Remote(0), SGL: all(src)})
	if err == nil {
		t.Error("a Write is taken")
	}
	must(t, res.PostRecv(&iwarp.RecvWR{SGL: all(dst)}))
	const text = "text that is longer than 8 octets"
	ini.post(&iwarp.SendWR{Inline: []byte(text)})
	if wc := next(t, res.RecvCQ()); wc.Status != iwarp.StatusSuccess || string(dst.Bytes()[:len(text)]) != text {
		t.Errorf("a receive, of which the beginning is needed: %v (%v)", wc.Status, wc.Err())
	}
}
