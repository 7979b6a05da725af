package stream

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/inbox"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// resources are what a connection takes of an RNIC.
type resources struct {
	cfg            Config
	rnic           *iwarp.RNIC // to be closed with the connection; nil: it is the caller's
	pd             *iwarp.PD
	qp             *iwarp.QP
	sendCQ, recvCQ *iwarp.CQ
	ring           *iwarp.MR // that the peer writes into
	table          *iwarp.MR // where the peer says where we may write
	words          *inbox.Inbox
}

// acquire takes everything. pd is nil for a Protection Domain, and an RNIC, of the connection's own.
func acquire(pd *iwarp.PD, qc iwarp.QPConfig, cfg Config) (r *resources, err error) {
	r = &resources{cfg: cfg, pd: pd}
	for _, take := range []func() error{r.cfg.fill, r.takePD, func() error { return r.takeQP(qc) }, r.takeMemory, r.postAll} {
		if err = take(); err != nil {
			return nil, errors.Join(err, r.release())
		}
	}
	return r, nil
}

func (r *resources) takePD() (err error) {
	if r.pd == nil {
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{})
		r.pd, err = r.rnic.AllocPD()
	}
	return err
}

// takeQP makes the QP. A peer that has sent its FIN wants nothing any more: so there is no reason to linger.
func (r *resources) takeQP(qc iwarp.QPConfig) (err error) {
	words := r.cfg.Credits + spareWords
	if r.sendCQ, err = r.pd.RNIC().CreateCQ(sendDepth); err != nil {
		return err
	}
	if r.recvCQ, err = r.pd.RNIC().CreateCQ(words); err != nil {
		return err
	}
	qc.SendCQ, qc.RecvCQ, qc.SRQ = r.sendCQ, r.recvCQ, nil
	qc.SendDepth, qc.RecvDepth, qc.MaxInline = sendDepth, words, inlineMost
	qc.Linger, qc.HalfClose = -1, false
	r.qp, err = r.pd.CreateQP(qc)
	return err
}

// takeMemory registers what the peer reaches for this connection only, so that no other can.
func (r *resources) takeMemory() (err error) {
	tables := tableSlots*rsockets.EntryLen + r.cfg.Maps*rsockets.MapLen
	for _, m := range []struct {
		mr     **iwarp.MR
		octets int
	}{{&r.ring, r.cfg.Ring}, {&r.table, tables}} {
		if *m.mr, err = r.pd.RegisterOptions(make([]byte, m.octets), iwarp.MROptions{Access: iwarp.RemoteWrite, QP: r.qp}); err != nil {
			return err
		}
	}
	return nil
}

// postAll posts a receive for each credit, and some for words that cost none.
func (r *resources) postAll() (err error) {
	r.words, err = inbox.Open(r.qp, r.recvCQ.Depth(), rsockets.WordLen)
	return err
}

// hello is what the peer is told.
func (r *resources) hello(big bool) rsockets.Hello {
	return rsockets.Hello{
		Big: big, Credits: uint16(r.cfg.Credits), CountsMaps: true, Maps: r.cfg.Maps,
		Table: place(r.table.Remote(0)), Entries: tableSlots,
		Ring: rsockets.Entry{Place: place(r.ring.Remote(0)), Length: uint32(r.ring.Len() / 2)},
	}
}

func place(r iwarp.Remote) rsockets.Place { return rsockets.Place{TO: r.TO, STag: r.STag} }

func remote(p rsockets.Place) iwarp.Remote { return iwarp.Remote{TO: p.TO, STag: p.STag} }

// release gives everything back. Its error is that of the QP's end.
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
	if r.rnic != nil {
		_ = r.rnic.Close()
	}
	return err
}
