package usertcp

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A reported gap is in an acknowledgement of what lies in front of it. The test numbers acknowledgements by their
// timestamps.
type reported struct {
	t    *testing.T
	gaps gapReport
	mu   sync.Mutex
	sent [][]byte // by the timer
}

// drain returns what the timer has sent.
func (r *reported) drain() (sent [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, r.sent = r.sent, nil
	return sent
}

// gapsOf are blocks from one sequence number to another.
func gapsOf(ends ...uint32) []header.SACKBlock {
	p := &played{}
	return p.blocks(ends...)
}

// acks has TCP acknowledge what is in front of a sequence number, and returns what is sent at once.
func (r *reported) acks(number, ack uint32, repeats bool) []byte {
	packet := made{seq: 1, ack: ack, flags: header.TCPFlagAck, time: number}.packet(0)
	return r.gaps.acknowledging(packet, ack, repeats, func(p []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sent = append(r.sent, p)
	})
}

// wants takes an acknowledgement that was sent.
func (r *reported) wants(what string, packet []byte, number, ack uint32, held []header.SACKBlock) {
	r.t.Helper()
	s, ok := parseSegment(packet)
	if !ok || !s.intact() {
		r.t.Errorf("%s: nothing, or no segment: %x", what, packet)
		return
	}
	o := header.ParseTCPOptions(s.tcp.Options())
	if o.TSVal != number || s.ack != ack || !slices.Equal(o.SACKBlocks, held) {
		r.t.Errorf("%s: acknowledgement %d of %d with %v, want %d of %d with %v",
			what, o.TSVal, s.ack, o.SACKBlocks, number, ack, held)
	}
}

// silent takes what is to be nothing.
func (r *reported) silent(what string, packet []byte) {
	r.t.Helper()
	if sent := r.drain(); packet != nil || len(sent) > 0 {
		r.t.Errorf("%s: sent %x, and later %x", what, packet, sent)
	}
}

// TestGapReport: an acknowledgement that repeats the last waits for what TCP holds by then. One that was sent before
// TCP held the segment is sent again with that, if it still says what is expected next.
//
// RFC 2018, section 4: "The first SACK block [...] MUST specify the contiguous block of data containing the segment
// which triggered this ACK, unless that segment advanced the Acknowledgment Number field in the header."
func TestGapReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes
		r := &reported{t: t, gaps: gapReport{delay: time.Hour}}
		one, two := gapsOf(300, 350), gapsOf(400, 450, 300, 350)
		r.silent("no acknowledgement yet", r.gaps.processed(one, 200))
		r.wants("the first", r.acks(1, 200, false), 1, 200, one)
		r.silent("TCP holds what it held", r.gaps.processed(one, 200))
		r.wants("another", r.acks(2, 200, false), 2, 200, one)
		r.wants("TCP holds more", r.gaps.processed(two, 200), 2, 200, two)
		r.silent("it is sent again once", r.gaps.processed(one, 200))
		r.wants("one in order", r.acks(3, 250, false), 3, 250, one)
		r.silent("TCP expects what comes after it", r.gaps.processed(two, 260))
		r.wants("one in front of all that is held", r.acks(4, 260, false), 4, 260, two)
		r.silent("one that repeats it", r.acks(5, 260, true))
		r.wants("TCP holds less", r.gaps.processed(one, 260), 5, 260, one)
		r.wants("the gap is full", r.acks(6, 350, false), 6, 350, nil)
		r.silent("TCP holds nothing", r.gaps.processed(nil, 350))
	})
}

// TestGapReportWaits: an acknowledgement that repeats the last is sent a little later where TCP has processed no
// segment, each time.
func TestGapReportWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reported{t: t, gaps: gapReport{delay: repeatDelay}}
		held := gapsOf(300, 350)
		r.gaps.processed(held, 200)
		for number := uint32(1); number <= 3; number++ {
			r.silent("at once", r.acks(number, 200, true))
			time.Sleep(repeatDelay - 1)
			synctest.Wait()
			r.silent("too early", nil)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			sent := r.drain()
			if len(sent) != 1 {
				t.Fatalf("%d are sent after %v", len(sent), repeatDelay)
			}
			r.wants("later", sent[0], number, 200, held)
		}
		r.silent("one more", r.acks(4, 200, true))
		r.wants("TCP has processed a segment", r.gaps.processed(held, 200), 4, 200, held)
		r.silent("and another", r.acks(5, 200, true))
		r.wants("one that repeats none", r.acks(6, 250, false), 6, 250, held)
		time.Sleep(2 * repeatDelay)
		synctest.Wait()
		r.silent("what was answered, or has become needless", nil)
	})
}
