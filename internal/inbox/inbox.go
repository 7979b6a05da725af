// Package inbox keeps receives of one length posted at a QP: each has a slot of registered memory, and the slot's
// number as its WRID.
package inbox

import (
	"context"

	"github.com/goiwarp/iwarp"
)

// An Inbox is the slots of one QP. It has no lock: one goroutine posts and reads a slot at a time.
type Inbox struct {
	qp    *iwarp.QP
	mr    *iwarp.MR
	slots []iwarp.SGE
}

// Open registers n slots of length bytes for a QP, and posts the receive of each.
func Open(qp *iwarp.QP, n, length int) (*Inbox, error) {
	mr, err := qp.PD().Register(make([]byte, n*length), iwarp.LocalWrite)
	if err != nil {
		return nil, err
	}
	b := &Inbox{qp: qp, mr: mr, slots: make([]iwarp.SGE, n)}
	for i := range b.slots {
		b.slots[i] = mr.Slice(i*length, length)
		if err := b.Post(uint64(i)); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// WR is the receive of a slot.
func (b *Inbox) WR(slot uint64) iwarp.RecvWR {
	return iwarp.RecvWR{ID: slot, SGL: b.slots[slot : slot+1 : slot+1]}
}

// Post posts the receive of a slot, whose bytes are of no use any more.
func (b *Inbox) Post(slot uint64) error {
	wr := b.WR(slot)
	return b.qp.PostRecv(&wr)
}

// Bytes are those that a receive has completed with. They stay until its slot is posted again.
func (b *Inbox) Bytes(wc *iwarp.WC) []byte {
	at := int(wc.ID) * (b.mr.Len() / len(b.slots))
	return b.mr.Bytes()[at:][:wc.Length:wc.Length]
}

// Close gives the memory back. A nil Inbox has none.
func (b *Inbox) Close() {
	if b != nil {
		_ = b.mr.Deregister() // it is registered, and has no windows
	}
}

// Each calls f with the completions of a CQ as they come. The error is f's, or that of [iwarp.CQ.Wait] when none come
// any more or the context has ended. After an error of f's, those that came together with the last one are lost.
func Each(ctx context.Context, cq *iwarp.CQ, f func(*iwarp.WC) error) error {
	var wcs [32]iwarp.WC
	for {
		n := cq.Poll(wcs[:])
		for i := range n {
			if err := f(&wcs[i]); err != nil {
				return err
			}
		}
		if n > 0 {
			continue
		}
		if err := cq.Wait(ctx); err != nil {
			return err
		}
	}
}
