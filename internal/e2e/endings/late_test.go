package endings

import (
	"errors"
	"math"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestCheckLate: what is wrong with the memory of a request is no error of the post, but of the completion, and ends
// the connection.
//
// RDMA verbs 8: such errors are immediate ones or ones of the completion.
func TestCheckLate(t *testing.T) {
	elements := map[string]struct {
		of   func(e *rig.End) iwarp.SGE
		want iwarp.Status
	}{
		"no MR": {func(*rig.End) iwarp.SGE { return iwarp.SGE{Length: 4} }, iwarp.StatusLocalProtection},
		"beyond its MR": {func(e *rig.End) iwarp.SGE {
			return iwarp.SGE{MR: e.MR(4, iwarp.LocalWrite), Offset: 1,
				Length: 4}
		}, iwarp.StatusLocalProtection},
		"another PD": {func(e *rig.End) iwarp.SGE {
			return (&rig.End{T: t, PD: rig.NewPD(t, e.RNIC)}).MR(4, iwarp.LocalWrite).Slice(0, 4)
		}, iwarp.StatusLocalProtection},
		"deregistered MR": {func(e *rig.End) iwarp.SGE {
			mr := e.MR(4, iwarp.LocalWrite)
			rig.Must(t, mr.Deregister())
			return mr.Slice(0, 4)
		}, iwarp.StatusLocalProtection},
		"not LocalWrite": {func(e *rig.End) iwarp.SGE { return e.MR(4, 0).Slice(0, 4) }, iwarp.StatusLocalAccess},
	}
	for what, tt := range elements {
		for op, post := range map[string]func(ini *rig.End){
			"Send": func(ini *rig.End) { ini.MustPost(&iwarp.SendWR{ID: 1, SGL: []iwarp.SGE{tt.of(ini)}}) },
			"Read": func(ini *rig.End) {
				ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead,
					SGL: []iwarp.SGE{tt.of(ini)}})
			},
		} {
			if op == "Send" && tt.want == iwarp.StatusLocalAccess {
				continue // it only reads
			}
			s := rig.Setup{}
			s.Dialer.QP.CheckLate = true
			ini, _ := s.Connect(t)
			post(ini)
			if wc := rig.Next(t, ini.SendCQ()); wc.ID != 1 || wc.Status != tt.want {
				t.Errorf("a %s with %s: %v, want %v", op, what, wc.Status, tt.want)
			}
			ini.WantEnd()
		}
		s := rig.Setup{}
		s.Accept.QP.CheckLate = true
		ini, res := s.Connect(t)
		res.MustPostRecv(2, tt.of(res))
		ini.MustPost(&iwarp.SendWR{Inline: []byte("text")})
		res.WantReceived(2, tt.want)
		res.WantEnd()
	}
	ini, _ := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{CheckLate: true}}}.Connect(t)
	elsewhere := rig.NewEnd(t, iwarp.RNICConfig{}).MR(4, 0)
	for what, s := range map[string]iwarp.SGE{"an MR of another RNIC": elsewhere.Slice(0, 4),
		"-1 bytes": {Length: -1}} {
		if err := ini.PostSend(&iwarp.SendWR{SGL: []iwarp.SGE{s}}); !errors.Is(err, iwarp.ErrInvalid) ||
			!rig.Contains(err, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLateWraps: lengths whose sum no memory has are too long for a message, and never what is left of the sum.
func TestLateWraps(t *testing.T) {
	s := rig.Setup{}
	s.Dialer.QP.CheckLate, s.Accept.QP.CheckLate = true, true
	ini, res := s.Connect(t)
	src, dst := ini.Filled(100, 3, iwarp.LocalWrite), res.MR(100, iwarp.RemoteWrite|iwarp.LocalWrite)
	all := func(mr *iwarp.MR) []iwarp.SGE {
		return []iwarp.SGE{{MR: mr, Length: math.MaxInt}, {MR: mr, Length: math.MaxInt}, {MR: mr, Length: 10}}
	}
	err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Remote: dst.Remote(0), SGL: all(src)})
	if err == nil {
		t.Error("a Write is taken")
	}
	rig.Must(t, res.PostRecv(&iwarp.RecvWR{SGL: all(dst)}))
	const text = "text that is longer than 8 bytes"
	ini.MustPost(&iwarp.SendWR{Inline: []byte(text)})
	if wc := rig.Next(t, res.RecvCQ()); wc.Status != iwarp.StatusSuccess || string(dst.Bytes()[:len(text)]) != text {
		t.Errorf("a receive, of which the beginning is needed: %v (%v)", wc.Status, wc.Err())
	}
}
