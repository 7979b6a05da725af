package capture_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
)

const (
	fin    = capture.FIN | capture.ACK
	rst    = capture.RST | capture.ACK
	syn    = capture.SYN
	synack = capture.SYN | capture.ACK
)

// impatient gives up what was acknowledged as soon as can be.
var impatient = capture.Config{GapPackets: 1}

// A scenario is the packets of a capture, and what a book has of them: all from the
// opening of a connection by the client on, unless another opening is named, up to where
// the connection is forgotten.
type scenario struct {
	name     string
	cfg      capture.Config
	segments bool
	packets  func(w *wire) []*capture.Packet
	want     string
}

const opened, forgotten = "0 open 10.0.0.1:40000 -> 10.0.0.2:4791", "0 forgotten"

// lines returns what the book must have.
func (s scenario) lines() []string {
	lines := unindent(s.want)
	if !strings.HasPrefix(lines[0], "0 open") {
		lines = slices.Concat([]string{opened}, lines, []string{forgotten})
	}
	return lines
}

func (s scenario) run(t *testing.T) {
	b := newBook(t)
	b.segments = s.segments
	tracker := capture.NewTracker(s.cfg, b)
	for _, p := range s.packets(newWire()) {
		tracker.Packet(p)
	}
	tracker.Flush()
	if d := cmp.Diff(s.lines(), b.lines); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func runAll(t *testing.T, all []scenario) {
	for _, s := range all {
		t.Run(s.name, s.run)
	}
}

// unindent returns the lines of a text.
func unindent(text string) (lines []string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// TestOrder has what comes out of order.
func TestOrder(t *testing.T) {
	runAll(t, []scenario{
		{name: "whole connection", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(),
				w.data(forth, 0, 0, "ask"), w.data(back, 0, 3, "answer"),
				w.packet(forth, fin, 3, 6, ""), w.packet(back, fin, 6, 4, ""), w.ack(back, 4, 7))
		}, want: `
			0 #4 -> data 0 "ask"
			0 #5 <- data 0 "answer"
			0 #6 -> end 3 FIN
			0 #7 <- end 6 FIN`},
		{name: "reordered", segments: true, packets: func(w *wire) []*capture.Packet {
			return append(w.handshake()[:2],
				w.data(forth, 3, 0, "def"), w.data(forth, 9, 0, "jkl"), w.data(forth, 0, 0, "abc"),
				w.data(forth, 6, 0, "ghi"))
		}, want: `
			0 #1 -> SYN 0+0 empty
			0 #2 <- SYN,ACK 0+0 empty
			0 #4 -> PSH,ACK 3+3 ahead
			0 #5 -> PSH,ACK 9+3 ahead
			0 #6 -> PSH,ACK 0+3 fills
			0 #6 -> data 0 "abc"
			0 #4 -> data 3 "def"
			0 #7 -> PSH,ACK 6+3 fills
			0 #7 -> data 6 "ghi"
			0 #5 -> data 9 "jkl"
			0 #7 -> end 12 end of capture
			0 #7 <- end 0 end of capture`},
		{name: "overlap ahead of a hole", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(),
				w.data(forth, 4, 0, "EF"), w.data(forth, 8, 0, "IJ"),
				w.data(forth, 3, 0, "defghijkl"), // the first ones count
				w.data(forth, 0, 0, "abcd"))
		}, want: `
			0 #7 -> data 0 "abc"
			0 #6 -> data 3 "d"
			0 #4 -> data 4 "EF"
			0 #6 -> data 6 "gh"
			0 #5 -> data 8 "IJ"
			0 #6 -> data 10 "kl"
			0 #7 -> end 12 end of capture
			0 #7 <- end 0 end of capture`},
	})
}

// TestRepeats has bytes that come once more.
func TestRepeats(t *testing.T) {
	runAll(t, []scenario{
		{name: "sent again", segments: true, packets: func(w *wire) []*capture.Packet {
			return []*capture.Packet{
				w.packet(forth, syn, -1, 0, ""), w.packet(forth, syn, -1, 0, ""), w.packet(back, synack, -1, 0, ""),
				w.data(forth, 0, 0, "abc"), w.data(forth, 3, 0, "def"),
				w.data(forth, 0, 0, "abc"),    // the same segment
				w.data(forth, 0, 0, "abcdef"), // both in one
				w.data(forth, 3, 0, "dXf"),    // not the same
				w.data(forth, 4, 0, "efgh"),   // cut otherwise, and two new ones
				w.packet(forth, capture.ACK, 7, 0, ""), w.data(forth, 7, 0, "\x00"),
			}
		}, want: `
			0 #1 -> SYN 0+0 empty
			0 #2 -> SYN 0+0 empty
			0 #3 <- SYN,ACK 0+0 empty
			0 #4 -> PSH,ACK 0+3 next
			0 #4 -> data 0 "abc"
			0 #5 -> PSH,ACK 3+3 next
			0 #5 -> data 3 "def"
			0 #6 -> PSH,ACK 0+3 repeat repeated 3 same of #4
			0 #7 -> PSH,ACK 0+6 repeat repeated 6 same of #4
			0 #8 -> PSH,ACK 3+3 repeat repeated 3 differs of #5
			0 #9 -> PSH,ACK 4+4 next repeated 2 unknown of #5
			0 #9 -> data 6 "gh"
			0 #10 -> ACK 7+0 empty keep-alive
			0 #11 -> PSH,ACK 7+1 repeat repeated 1 unknown of #9 keep-alive
			0 #11 -> end 8 end of capture
			0 #11 <- end 0 end of capture`},
	})
}

// TestBegin has how a connection begins, or what of its beginning the capture has.
func TestBegin(t *testing.T) {
	runAll(t, []scenario{
		{name: "begins in the middle", segments: true, packets: func(w *wire) []*capture.Packet {
			return []*capture.Packet{
				w.ack(forth, 777, 500), w.data(forth, 500, 777, "fgh"), w.data(forth, 498, 777, "def"),
				w.data(back, 777, 503, "xyz"), w.packet(back, fin, 780, 503, ""),
			}
		}, want: `
			0 open 10.0.0.2:4791 -> 10.0.0.1:40000
			0 #1 -> ACK 0+0 empty
			0 #2 <- PSH,ACK 0+3 next
			0 #2 <- data 0 "fgh"
			0 #3 <- PSH,ACK 0+1 repeat repeated 1 unknown of #2 early 2
			0 #4 -> PSH,ACK 0+3 next
			0 #4 -> data 0 "xyz"
			0 #5 -> FIN,ACK 3+0 empty
			0 #5 -> end 3 FIN
			0 #5 <- end 3 end of capture
			0 forgotten`},
		{name: "without the first SYN", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake()[1:], w.data(back, 0, 0, "abc"), w.data(forth, 1, 3, "yz"),
				w.data(forth, 0, 0, "x"))
		}, want: `
			0 #4 <- data 0 "abc"
			0 #6 -> data 0 "x"
			0 #5 -> data 1 "yz"
			0 #6 -> end 3 end of capture
			0 #6 <- end 3 end of capture`},
		{name: "bytes in SYN", packets: func(w *wire) []*capture.Packet {
			return []*capture.Packet{w.packet(forth, syn, -1, 0, "fast"), w.packet(back, synack, -1, 4, ""),
				w.data(forth, 4, 0, "er")}
		}, want: `
			0 #1 -> data 0 "fast"
			0 #3 -> data 4 "er"
			0 #3 -> end 6 end of capture
			0 #3 <- end 0 end of capture`},
		{name: "sequence numbers wrap around", packets: func(w *wire) []*capture.Packet {
			w.isn[0] = 1<<32 - 3
			return append(w.handshake(), w.data(forth, 3, 0, "def"), w.data(forth, 0, 0, "abc"),
				w.data(forth, 6, 0, "ghi"))
		}, want: `
			0 #5 -> data 0 "abc"
			0 #4 -> data 3 "def"
			0 #6 -> data 6 "ghi"
			0 #6 -> end 9 end of capture
			0 #6 <- end 0 end of capture`},
	})
}

// TestGaps has what is missing, and when waiting for it ends.
func TestGaps(t *testing.T) {
	runAll(t, []scenario{
		{name: "lost by the capture", cfg: impatient, packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(),
				w.data(forth, 0, 0, "abc"), w.data(forth, 6, 0, "ghi"),
				w.ack(forth, 0, 9), w.ack(forth, 0, 9), w.ack(forth, 0, 9),
				w.data(forth, 3, 0, "def")) // too late
		}, want: `
			0 #4 -> data 0 "abc"
			0 #8 -> gap 3+3 lost by the capture
			0 #5 -> data 6 "ghi"
			0 #9 -> end 9 end of capture
			0 #9 <- end 0 end of capture`},
		{name: "acknowledged before it is captured", cfg: capture.Config{GapPackets: 3},
			packets: func(w *wire) []*capture.Packet {
				return append(w.handshake(),
					w.data(forth, 3, 0, "def"), w.ack(forth, 0, 6), w.data(forth, 0, 0, "abc"))
			}, want: `
			0 #6 -> data 0 "abc"
			0 #4 -> data 3 "def"
			0 #6 -> end 6 end of capture
			0 #6 <- end 0 end of capture`},
		{name: "acknowledged a long time ago", packets: func(w *wire) []*capture.Packet {
			packets := append(w.handshake(), w.data(forth, 3, 0, "def"), w.ack(forth, 0, 6))
			w.at = w.at.Add(time.Hour)
			return append(packets, w.data(forth, 6, 0, "ghi"))
		}, want: `
			0 #6 -> gap 0+3 lost by the capture
			0 #4 -> data 3 "def"
			0 #6 -> data 6 "ghi"
			0 #6 -> end 9 end of capture
			0 #6 <- end 0 end of capture`},
		{name: "too much held back", cfg: capture.Config{MaxBuffered: 300}, packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(),
				w.data(forth, 3, 0, "d"), w.data(forth, 5, 0, "f"), w.data(forth, 7, 0, "h"))
		}, want: `
			0 #6 -> gap 0+3 given up
			0 #4 -> data 3 "d"
			0 #6 -> gap 4+1 never came
			0 #5 -> data 5 "f"
			0 #6 -> gap 6+1 never came
			0 #6 -> data 7 "h"
			0 #6 -> end 8 end of capture
			0 #6 <- end 0 end of capture`},
	})
}

// TestGapsAtEnd has what is known to be missing in the end, or from the start.
func TestGapsAtEnd(t *testing.T) {
	runAll(t, []scenario{
		{name: "end of capture", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(),
				w.data(forth, 3, 0, "def"), w.data(forth, 8, 0, "ijk"), w.ack(forth, 0, 7), w.ack(back, 0, 5))
		}, want: `
			0 #7 -> gap 0+3 lost by the capture
			0 #4 -> data 3 "def"
			0 #7 -> gap 6+1 lost by the capture
			0 #7 -> gap 7+1 never came
			0 #5 -> data 8 "ijk"
			0 #7 -> end 11 end of capture
			0 #7 <- gap 0+5 lost by the capture
			0 #7 <- end 5 end of capture`},
		{name: "snap length", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(),
				cut(w.data(forth, 3, 0, "defg"), 2), cut(w.data(forth, 0, 0, "abc"), 2),
				cut(w.data(forth, 7, 0, "hij"), 3), w.data(forth, 10, 0, "k"))
		}, want: `
			0 #5 -> data 0 "a"
			0 #5 -> gap 1+2 cut off by the snap length
			0 #4 -> data 3 "de"
			0 #4 -> gap 5+2 cut off by the snap length
			0 #6 -> gap 7+3 cut off by the snap length
			0 #7 -> data 10 "k"
			0 #7 -> end 11 end of capture
			0 #7 <- end 0 end of capture`},
	})
}

// TestEnds has how a connection ends.
func TestEnds(t *testing.T) {
	runAll(t, []scenario{
		{name: "reset", cfg: impatient, segments: true, packets: func(w *wire) []*capture.Packet {
			return append(w.handshake()[:2],
				w.data(forth, 0, 0, "abc"), w.data(forth, 6, 0, "ghi"), w.ack(forth, 0, 3),
				w.packet(back, rst, 1<<31, 3, ""), // from somewhere else
				w.packet(back, rst, 0, 3, "why"), w.data(forth, 9, 0, "jkl"))
		}, want: `
			0 #1 -> SYN 0+0 empty
			0 #2 <- SYN,ACK 0+0 empty
			0 #4 -> PSH,ACK 0+3 next
			0 #4 -> data 0 "abc"
			0 #5 -> PSH,ACK 6+3 ahead
			0 #6 <- ACK 0+0 empty
			0 #7 <- RST,ACK 0+0 empty
			0 #8 <- RST,ACK 0+0 empty
			0 #8 -> gap 3+3 never came
			0 #5 -> data 6 "ghi"
			0 #8 -> end 9 RST of the peer
			0 #8 <- end 0 RST
			0 #9 -> PSH,ACK 9+3 next`},
		{name: "refused", packets: func(w *wire) []*capture.Packet {
			return []*capture.Packet{w.packet(forth, syn, -1, 0, ""), w.packet(back, rst, -1, 0, "")}
		}, want: `
			0 #2 -> end 0 RST of the peer
			0 #2 <- end 0 RST`},
		{name: "FIN acknowledged before it is captured", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(), w.ack(forth, 0, 4), w.packet(forth, fin, 3, 0, ""))
		}, want: `
			0 #5 -> gap 0+3 lost by the capture
			0 #5 -> end 3 FIN
			0 #5 <- end 0 end of capture`},
		{name: "FIN ahead of bytes", packets: func(w *wire) []*capture.Packet {
			return append(w.handshake(), w.packet(forth, fin, 3, 0, "def"), w.data(forth, 0, 0, "abc"),
				w.data(forth, 6, 0, "no"))
		}, want: `
			0 #5 -> data 0 "abc"
			0 #4 -> data 3 "def"
			0 #5 -> end 6 FIN
			0 #6 <- end 0 end of capture`},
	})
}

// TestAgain has connections between the same ends.
func TestAgain(t *testing.T) {
	runAll(t, []scenario{
		{name: "the same ends again", packets: func(w *wire) []*capture.Packet {
			packets := append(w.handshake(), w.data(forth, 0, 0, "abc"))
			w.isn = [2]uint32{1 << 31, 7}
			return append(append(packets, w.handshake()...), w.data(forth, 0, 0, "xyz"))
		}, want: `
			0 open 10.0.0.1:40000 -> 10.0.0.2:4791
			0 #4 -> data 0 "abc"
			0 #5 -> end 3 replaced by a new connection
			0 #5 <- end 0 replaced by a new connection
			0 forgotten
			1 open 10.0.0.1:40000 -> 10.0.0.2:4791
			1 #8 -> data 0 "xyz"
			1 #8 -> end 3 end of capture
			1 #8 <- end 0 end of capture
			1 forgotten`},
		{name: "the same ends the other way round", packets: func(w *wire) []*capture.Packet {
			packets := []*capture.Packet{w.ack(forth, 0, 0)} // of the server, left over
			return append(append(packets, w.handshake()...), w.data(forth, 0, 0, "xyz"))
		}, want: `
			0 open 10.0.0.2:4791 -> 10.0.0.1:40000
			0 #2 -> end 0 replaced by a new connection
			0 #2 <- end 0 replaced by a new connection
			0 forgotten
			1 open 10.0.0.1:40000 -> 10.0.0.2:4791
			1 #5 -> data 0 "xyz"
			1 #5 -> end 3 end of capture
			1 #5 <- end 0 end of capture
			1 forgotten`},
	})
}
