package iwarp

import (
	"testing"
)

// keepsGather reports whether the QP has memory to send from.
func (b *burster) keepsGather() bool {
	b.qp.mu.Lock()
	defer b.qp.mu.Unlock()
	return b.qp.gather != nil
}

// A poster that finds much of what others have posted sends a bounded share of that, and hands
// the rest over: nothing is left behind, although nobody posts or polls any more. The memory that
// was sent from is given back.
func TestPosterHandsOver(t *testing.T) {
	const posts = 1<<15 - 1 // Writes of nothing, which are nine Gathers: many more than a share
	for range 10 {          // the socket may not take as much at once
		b := &burster{T: t, qp: dialed(t, Dialer{QP: QPConfig{SendDepth: posts, Nudge: -1}})}
		b.settled()
		b.qp.mu.Lock()
		var err error
		own := b.qp.eng.Posted() + 1
		for n := 0; err == nil && n < posts; n++ {
			err = b.qp.queueSend(&SendWR{Op: OpWrite, Unsignaled: true}, nil)
		}
		writes := b.qp.pushOwnUnlocking(b.qp.now(), own)
		left, _ := b.qp.eng.Outstanding()
		b.qp.mu.Unlock()
		if err != nil || writes > 1+maxShare {
			t.Fatalf("%d writes, the share is %d (%v)", writes, maxShare, err)
		}
		b.settled()
		if b.keepsGather() {
			t.Fatal("the memory to send from is kept")
		}
		if left > 0 && writes == 1+maxShare {
			return
		}
	}
	t.Error("no poster has handed over")
}

// Work that sends nothing keeps no memory to send from.
func TestLocalWorkKeepsNothing(t *testing.T) {
	b := newBurster(t)
	mr, err := b.qp.pd.Register(make([]byte, 8), LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.qp.PostSend(&SendWR{Op: OpLocalInvalidate, Target: mr}); err != nil {
		t.Fatal(err)
	}
	b.settled()
	if b.keepsGather() {
		t.Error("the memory to send from is kept")
	}
}
