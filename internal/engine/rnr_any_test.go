package engine

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What waits has its turn as if the receives had been there before: memory, completions and what is sent are the same.
//
// Proves D26, D27, P40.
func TestAnyReadiness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over := []func(*setup){messages, func(*setup) {}}[rapid.IntRange(0, 1).Draw(t, "over")]
		a := newScene(t, over)
		p := a.draw(t)
		for _, ulpdu := range p.ulpdus {
			a.comes(p, ulpdu)
		}
		ready := a.verdict()
		if ready.State != RTS {
			t.SkipNow() // an error may come before what waits has its turn
		}
		posted := rapid.IntRange(0, sceneReceives-1).Draw(t, "receives")
		b := newSceneOf(t, func(s *setup) { over(s); patient(1<<20, 100)(s) }, posted)
		late := func() {
			if b.Machine.ReceiverNotReady() && posted < sceneReceives {
				b.receiveLate(uint64(posted), b.slot(posted))
				posted++
				b.use(p)
			}
		}
		for _, ulpdu := range p.ulpdus {
			b.comes(p, ulpdu)
			if rapid.Bool().Draw(t, "ready") {
				late()
			}
		}
		for b.Machine.ReceiverNotReady() && posted < sceneReceives {
			late()
		}
		unready := b.verdict()
		if ready.State != unready.State || !bytes.Equal(ready.Memory, unready.Memory) ||
			!bytes.Equal(ready.Sent, unready.Sent) {
			t.Fatalf("ready: %v\nunready: %v, %v", ready, unready, b.Machine.Cause())
		}
		for _, op := range []Op{OpReceive, OpRead} {
			if diff := cmp.Diff(succeeded(ready.Done, op), succeeded(unready.Done, op)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// comes has a segment arrive next in order.
func (x *scene) comes(p *plot, ulpdu []byte) {
	ulpdu = x.translate(p, ulpdu)
	if x.Machine.Layer == LayerMessages {
		x.peer.segment(x.Machine.ahead.next, ulpdu)
	} else {
		x.sendRaw(ulpdu)
	}
	x.use(p)
}

// succeeded are the completions of an operation that was carried out.
func succeeded(all []Completion, op Op) []Completion {
	return slices.DeleteFunc(slices.Clone(all), func(c Completion) bool {
		return c.Op != op ||
			c.Status != StatusSuccess
	})
}
