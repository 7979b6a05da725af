package rig

import (
	"testing"

	"github.com/goiwarp/iwarp"
)

// NewCQ creates a CQ.
func NewCQ(t testing.TB, r *iwarp.RNIC, depth int) *iwarp.CQ {
	t.Helper()
	cq, err := r.CreateCQ(depth)
	Must(t, err)
	return cq
}

// NewQP creates a QP without a connection.
func NewQP(t testing.TB, pd *iwarp.PD, cfg iwarp.QPConfig) *iwarp.QP {
	t.Helper()
	qp, err := pd.CreateQP(cfg)
	Must(t, err)
	return qp
}

// SRQRig is a Responder's RNIC with a Shared Receive Queue, and connections that
// use it.
type SRQRig struct {
	RNIC *iwarp.RNIC
	PD   *iwarp.PD
	SRQ  *iwarp.SRQ
	CQ   *iwarp.CQ
	MR   *iwarp.MR
}

// NewSRQRig makes an SRQ on an RNIC of its own.
func NewSRQRig(t testing.TB, cfg iwarp.SRQConfig) *SRQRig {
	t.Helper()
	return NewSRQRigOn(t, NewRNIC(t, iwarp.RNICConfig{}), cfg)
}

// NewSRQRigOn makes an SRQ on this RNIC.
func NewSRQRigOn(t testing.TB, rnic *iwarp.RNIC, cfg iwarp.SRQConfig) *SRQRig {
	t.Helper()
	s := &SRQRig{RNIC: rnic}
	s.PD = NewPD(t, s.RNIC)
	s.CQ = NewCQ(t, s.RNIC, 256)
	var err error
	if s.SRQ, err = s.PD.CreateSRQ(cfg); err != nil {
		t.Fatal(err)
	}
	if s.MR, err = s.PD.Register(make([]byte, 64), iwarp.LocalWrite); err != nil {
		t.Fatal(err)
	}
	return s
}

// Connect brings up a connection whose Responder receives by the SRQ.
func (s *SRQRig) Connect(t testing.TB) (ini, res *End) {
	t.Helper()
	return Setup{Accept: iwarp.AcceptConfig{PD: s.PD, QP: iwarp.QPConfig{SRQ: s.SRQ, RecvCQ: s.CQ}}}.Connect(t)
}

// PostSmall posts n small Sends, which leave no completion.
func PostSmall(e *End, n int) {
	e.T.Helper()
	for range n {
		e.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true, Inline: []byte("send")})
	}
}
