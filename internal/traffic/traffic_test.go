package traffic

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/rdmap"
)

// at is a packet at a time in microseconds.
func at(number uint64, us int) capture.Stamp {
	return capture.Stamp{Number: number, Time: time.Unix(1000, 0).Add(time.Duration(us) * time.Microsecond)}
}

func segment(dir capture.Dir, p capture.Stamp, op rdmap.Opcode, stag, msn uint32, last bool, payload int) *decode.FPDU {
	f := &decode.FPDU{HasSegment: true, Dir: dir, Op: op, First: p, Last: p}
	info, _ := op.Info()
	f.Segment.Tagged, f.Segment.STag, f.Segment.MSN, f.Segment.Last = info.Tagged, stag, msn, last
	f.Segment.Payload = make([]byte, payload)
	return f
}

// TestPrint sums up a few operations.
func TestPrint(t *testing.T) {
	s, c := New(), &decode.Connection{TCP: &capture.Connection{Number: 3}}
	s.FPDU(c, segment(0, at(1, 0), rdmap.OpWrite, 0xab, 0, false, 50_000))
	s.FPDU(c, segment(0, at(2, 150), rdmap.OpWrite, 0xab, 0, true, 50_000))
	request := rdmap.AtomicRequest{ID: 7}
	ask := segment(0, at(3, 200), rdmap.OpAtomicRequest, 0, 1, true, 0)
	ask.Segment.Payload = request.Append(nil)
	s.FPDU(c, ask)
	answer := segment(1, at(4, 230), rdmap.OpAtomicResponse, 0, 1, true, 0)
	response := rdmap.AtomicResponse{ID: 7}
	answer.Segment.Payload = response.Append(nil)
	s.FPDU(c, answer)
	s.FPDU(c, segment(1, at(6, 310), rdmap.OpReadResponse, 5, 0, true, 25_000))
	for i := range 100 {
		s.Read(c, &decode.Read{Request: at(uint64(10+i), 0), Last: at(20, 1+i),
			ReadRequest: rdmap.ReadRequest{SrcSTag: uint32(0x100 + i%11), Size: 1000}})
	}
	s.FPDU(c, segment(0, at(6, 320), rdmap.OpSend, 0, 9, true, 1000))
	s.FPDU(c, &decode.FPDU{}) // in error
	s.Ended(c)
	var out bytes.Buffer
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `
throughput, in MB/s of payload over 100µs each
          from     Write      Read      Send     other
      0.0000 s    500.00      0.00      0.00      0.00  ████████████████████████
      0.0001 s    500.00      0.00      0.00      0.00  ████████████████████████
      0.0002 s      0.00      0.00      0.00      0.64
      0.0003 s      0.00    250.00     10.00      0.00  ████████████
time
                                  count       min       50%       90%       99%     99.9%       max
  Read, to the whole Response       100       1µs      50µs      90µs      99µs     100µs     100µs
                               slowest: connection #3, packet 109
  Atomic, to the Response             1      30µs      30µs      30µs      30µs      30µs      30µs
                               slowest: connection #3, packet 4
  message of several segments         1     150µs     150µs     150µs     150µs     150µs     150µs
                               slowest: connection #3, packet 2
STags with most bytes: written to by the other end, or read from by it
  0x000000ab #3    -> Writes          1 message          100000 bytes
  0x00000100 #3    <- Reads          10 messages          10000 bytes
  0x00000101 #3    <- Reads           9 messages           9000 bytes
  0x00000102 #3    <- Reads           9 messages           9000 bytes
  0x00000103 #3    <- Reads           9 messages           9000 bytes
  0x00000104 #3    <- Reads           9 messages           9000 bytes
  0x00000105 #3    <- Reads           9 messages           9000 bytes
  0x00000106 #3    <- Reads           9 messages           9000 bytes
  0x00000107 #3    <- Reads           9 messages           9000 bytes
  0x00000108 #3    <- Reads           9 messages           9000 bytes
  all others                          18 messages          18000 bytes
`
	if d := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); d != "" {
		t.Errorf("printed (-want +got):\n%s", d)
	}
}

// TestNothing sums up nothing.
func TestNothing(t *testing.T) {
	var out bytes.Buffer
	if err := New().Print(&out); err != nil || out.String() != "no FPDU\n" {
		t.Errorf("%q (%v)", &out, err)
	}
}

// TestSeries has the steps become longer, and keeps each byte.
func TestSeries(t *testing.T) {
	s := newSeries()
	for us := range 10_000 {
		s.add(time.Duration(us)*time.Microsecond, us%len(kinds), 1)
	}
	s.add(-time.Second, 0, 1)
	all := uint64(0)
	for i := range s.used {
		all += sum(s.bytes[i])
	}
	if s.step != 400*time.Microsecond || s.used != 25 || all != 10_001 || sum(s.bytes[1]) != 400 {
		t.Errorf("%d steps of %v with %d bytes, %d of them in the second", s.used, s.step, all, sum(s.bytes[1]))
	}
	s.add(1000*time.Hour, 1, 5)
	if s.used > maxSteps || sum(s.bytes[0]) != 10_001 {
		t.Errorf("%d steps of %v", s.used, s.step)
	}
}

// TestBounds has more STags, and more that is under way, than are kept.
func TestBounds(t *testing.T) {
	s, c := New(), &decode.Connection{TCP: &capture.Connection{}}
	for i := range uint32(maxSTags + 10) {
		s.FPDU(c, segment(0, at(1, 0), rdmap.OpWrite, i, 0, false, 1))
	}
	if n := len(s.stags); n != maxSTags || s.others.bytes != 10 || len(s.open[c].first[0]) != maxRequests {
		t.Errorf("%d STags, %d bytes of others, %d messages under way", n, s.others.bytes, len(s.open[c].first[0]))
	}
	s.Ended(c)
	if len(s.open) > 0 {
		t.Error("an ended connection is kept")
	}
}
