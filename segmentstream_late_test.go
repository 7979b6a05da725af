package iwarp_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A belated is a SegmentStream whose last Recv brings something in when the test says so, after the
// end of the connection.
type belated struct {
	iwarp.SegmentStream
	last chan segmentResult
}

type segmentResult struct {
	iwarp.SegmentArrival
	error
}

func (b *belated) Recv() (iwarp.SegmentArrival, error) {
	a, err := b.SegmentStream.Recv()
	if err != nil {
		last := <-b.last
		return last.SegmentArrival, last.error
	}
	return a, nil
}

// TestSegmentStreamOldReceiver connects a QP again while the goroutine that receives from its first
// stream is still at it. Whatever that brings in then does not touch the second.
func TestSegmentStreamOldReceiver(t *testing.T) {
	h := rdmap.OpSend.Header(1)
	h.Last, h.MSN = true, ddp.FirstMSN
	n := mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}
	for _, last := range []segmentResult{
		{SegmentArrival: iwarp.SegmentArrival{Number: 5, Segment: h.Append(nil)}},
		{SegmentArrival: iwarp.SegmentArrival{Number: 5, End: true}},
		{SegmentArrival: iwarp.SegmentArrival{Number: 5, Err: errors.New("a broken rule")}},
		{error: io.ErrUnexpectedEOF},
	} {
		e := newEnd(t, iwarp.RNICConfig{})
		e.QP = create(t, e.pd, iwarp.QPConfig{})
		first, _ := newShuffled(1, nil)
		old := &belated{first, make(chan segmentResult)}
		must(t, e.ModifyRTSOver(old, n, nil))
		must(t, e.Modify(iwarp.StateError))
		wait(t, e.Done(), "the end of the connection")
		must(t, e.Modify(iwarp.StateIdle))
		second, _ := newShuffled(1, nil)
		must(t, e.ModifyRTSOver(second, n, nil))
		e.postRecv(1)
		calls := e.Stats().ReceiveCalls
		old.last <- last
		until(t, func() bool { return strings.Count(stacks(), ".receiveSegments(") == 1 }, "the old receiver")
		var wc [1]iwarp.WC
		if e.State() != iwarp.StateRTS || e.RecvCQ().Poll(wc[:]) > 0 || e.Stats().ReceiveCalls != calls {
			t.Errorf("%+v: state %v, %v, %d calls", last, e.State(), wc[0], e.Stats().ReceiveCalls-calls)
		}
		must(t, e.Abort())
	}
}

// A narrowing is a SegmentStream on whose path segments become shorter.
type narrowing struct {
	iwarp.SegmentStream
	octets atomic.Int64
}

func (n *narrowing) MULPDU() int { return int(n.octets.Load()) }

// TestSegmentStreamMULPDU: segments are as long as the path takes them, which changes.
//
// Proves D01.
func TestSegmentStreamMULPDU(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	e.QP = create(t, e.pd, iwarp.QPConfig{})
	a, b := newShuffled(1, nil)
	s := &narrowing{SegmentStream: a}
	s.octets.Store(1000)
	must(t, e.ModifyRTSOver(s, mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}, nil))
	for _, octets := range []int{1000, 500} {
		s.octets.Store(int64(octets))
		for range 2 { // the first may have been built before
			e.post(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true})
			got, err := b.Recv()
			if err != nil || len(got.Segment) == 0 {
				t.Errorf("%+v, %v", got, err)
			}
		}
		until(t, func() bool { return e.Query().MULPDU == octets }, "the MULPDU to follow")
	}
	must(t, e.Abort())
}
