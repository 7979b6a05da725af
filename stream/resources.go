package stream

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/inbox"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

// resources are what a connection has of an RNIC.
type resources struct {
	cfg            Config
	rnic           *iwarp.RNIC // closed with the connection; nil: it is another's
	pd             *iwarp.PD
	ownPD          bool // closed with the connection
	qp             *iwarp.QP
	sendCQ, recvCQ *iwarp.CQ
	ring           *iwarp.MR // The peer writes its bytes here,
	table          *iwarp.MR // and here where this end may write in turn.
	words          *inbox.Inbox
	unreserve      func() // frees what is reserved for all of these, and for a Write
}

// allocate makes everything that a connection needs. If pd is nil, it has a Protection Domain of its own on the RNIC.
// If that is nil too, it has an RNIC of its own.
func allocate(rnic *iwarp.RNIC, pd *iwarp.PD, qc iwarp.QPConfig, cfg Config) (r *resources, err error) {
	r = &resources{cfg: cfg, pd: pd}
	allocPD := func() error { return r.allocPD(rnic) }
	createQP := func() error { return r.createQP(qc) }
	for _, step := range []func() error{r.cfg.fill, allocPD, r.reserve, createQP, r.registerMemory, r.postReceives} {
		if err = step(); err != nil {
			return nil, errors.Join(err, r.release())
		}
	}
	return r, nil
}

func (r *resources) allocPD(rnic *iwarp.RNIC) (err error) {
	if r.pd != nil {
		return nil
	}
	if rnic == nil {
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{})
		rnic = r.rnic
	}
	r.pd, err = rnic.AllocPD()
	r.ownPD = err == nil
	return err
}

// reserve sets memory aside for everything that a connection registers, as one that is up must not fail without
// memory.
func (r *resources) reserve() (err error) {
	r.unreserve, err = r.pd.Reserve(r.cfg.Ring + r.tableLen() + r.wordCount()*rsockets.WordLen + transferLen)
	return err
}

// tableLen is the length in bytes of the tables that the peer writes into.
func (r *resources) tableLen() int {
	return tableSlots*rsockets.EntryLen + r.cfg.Maps*rsockets.MapLen
}

// wordCount is how many receives for words there are.
func (r *resources) wordCount() int { return r.cfg.Credits + spareWords }

// checkQP refuses what would take the receives away from this package.
func checkQP(qc *iwarp.QPConfig) error {
	if qc.Receives != (iwarp.Receives{}) {
		return fmt.Errorf("%w: RDMA.QP.Receives is set: leave it zero, as a stream posts its receives by itself",
			iwarp.ErrInvalid)
	}
	return nil
}

// createQP creates the QP and its CQs. It does not linger, because a peer that has sent its FIN wants no more bytes.
func (r *resources) createQP(qc iwarp.QPConfig) (err error) {
	if err := checkQP(&qc); err != nil {
		return err
	}
	words := r.wordCount()
	if r.sendCQ, err = r.pd.RNIC().CreateCQ(sendDepth); err != nil {
		return err
	}
	if r.recvCQ, err = r.pd.RNIC().CreateCQ(words); err != nil {
		return err
	}
	qc.SendCQ, qc.RecvCQ, qc.SRQ = r.sendCQ, r.recvCQ, nil
	qc.SendDepth, qc.RecvDepth, qc.MaxInline = sendDepth, words, inlineLimit
	qc.Linger, qc.HalfClose = -1, false
	r.qp, err = r.pd.CreateQP(qc)
	return err
}

// registerMemory registers what the peer writes into. It is bound to the QP, so that no other peer can write there.
func (r *resources) registerMemory() (err error) {
	for _, m := range []struct {
		mr     **iwarp.MR
		length int
	}{{&r.ring, r.cfg.Ring}, {&r.table, r.tableLen()}} {
		opts := iwarp.MROptions{Access: iwarp.RemoteWrite, QP: r.qp}
		if *m.mr, err = r.pd.RegisterOptions(make([]byte, m.length), opts); err != nil {
			return err
		}
	}
	return nil
}

// postReceives posts a receive for each credit, and some for words that need no credit.
func (r *resources) postReceives() (err error) {
	r.words, err = inbox.Open(r.qp, r.recvCQ.Depth(), rsockets.WordLen)
	return err
}

// hello returns what this end says of itself in the private data.
func (r *resources) hello(big bool) rsockets.Hello {
	return rsockets.Hello{
		Big: big, Credits: uint16(r.cfg.Credits), CountsMaps: true, Maps: r.cfg.Maps,
		Table: place(r.table.Remote(0)), Entries: tableSlots,
		Ring: rsockets.Entry{Place: place(r.ring.Remote(0)), Length: uint32(r.ring.Len() / 2)},
	}
}

func place(r iwarp.Remote) rsockets.Place { return rsockets.Place{TO: r.TO, STag: r.STag} }

func remote(p rsockets.Place) iwarp.Remote { return iwarp.Remote{TO: p.TO, STag: p.STag} }

// release frees everything. The error is that of the QP's Close.
func (r *resources) release() (err error) {
	if r.qp != nil {
		err = r.qp.Close()
	}
	for _, mr := range []*iwarp.MR{r.ring, r.table} {
		if mr != nil {
			_ = mr.Deregister()
		}
	}
	r.words.Close()
	for _, cq := range []*iwarp.CQ{r.sendCQ, r.recvCQ} {
		if cq != nil {
			_ = cq.Close()
		}
	}
	if r.unreserve != nil {
		r.unreserve()
	}
	if r.ownPD {
		_ = r.pd.Close()
	}
	if r.rnic != nil {
		_ = r.rnic.Close()
	}
	return err
}
