//go:build interop

package interop_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A talk is a connection of which both ends are made up.
type talk struct {
	pieces []piece
	ends   [2]*script.Link
}

// newTalk begins with a Request and a Reply. M is what an end wants to receive.
func newTalk(markers [2]bool, crc bool) *talk {
	k := &talk{}
	for dir, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		frame := mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, Rev: 1, M: markers[1-dir], C: crc})
		k.pieces = append(k.pieces, piece{capture.Dir(dir), frame})
		k.ends[dir] = script.NewLink(nil)
		k.ends[dir].Operate(script.Terms{MarkersSend: markers[dir], CRC: crc, Version: 1})
	}
	return k
}

// send has one end send a segment around a payload.
func (k *talk) send(dir capture.Dir, h ddp.Header, payload []byte) {
	h.Last = true
	k.pieces = append(k.pieces, piece{dir, k.ends[dir].Segment(h, payload)})
}

// ping has both ends send Sends and Writes of n bytes.
func (k *talk) ping(n int) {
	for msn := range uint32(4) {
		for _, dir := range []capture.Dir{fromInitiator, fromResponder} {
			h := rdmap.OpSend.Header(1)
			h.MSN = msn + 1
			k.send(dir, h, bytes.Repeat([]byte{'s'}, n))
			w := rdmap.OpWrite.Header(1)
			w.STag, w.TO = 0x12345678+msn, 1<<40+uint64(msn)
			k.send(dir, w, bytes.Repeat([]byte{'w'}, n+1))
		}
	}
}

// TestTsharkMessages has tshark read what rping never sends: every message of
// RFC 5040 and of RFC 7306, in both directions.
//
// Proves F01, F04, D09, D10, P04, P06, P08, P10, A06, A23, A32
func TestTsharkMessages(t *testing.T) {
	k := newTalk([2]bool{}, true)
	for op := rdmap.OpWrite; op <= rdmap.OpAtomicResponse; op++ {
		for _, dir := range []capture.Dir{fromInitiator, fromResponder} {
			h := op.Header(1)
			info, _ := op.Info()
			if info.Invalidate {
				h.ULP = 0xcafe0000 + uint32(op)
			}
			if h.Tagged {
				h.STag, h.TO = 0x01020304, 0xfffffffffffffff0
			} else {
				h.MSN = 0xfffffff0 + uint32(op)
			}
			k.send(dir, h, payloadOf(op))
		}
	}
	wantAgreement(t, record(t, k.pieces))
}

// payloadOf returns what a message of the opcode may hold.
func payloadOf(op rdmap.Opcode) []byte {
	switch op {
	case rdmap.OpReadRequest:
		r := rdmap.ReadRequest{SinkSTag: 1 << 31, SinkTO: 1 << 63, Size: 1<<32 - 1, SrcSTag: 0x11223344,
			SrcTO: 0x5566778899aabbcc}
		return r.Append(nil)
	case rdmap.OpTerminate:
		t := rdmap.Terminate{Code: rdmap.CodeMPACRC}
		return t.Append(nil)
	case rdmap.OpImmediateData, rdmap.OpImmediateDataSE:
		return []byte("immediat")
	case rdmap.OpAtomicRequest:
		r := rdmap.CmpSwap(1<<63, 1<<62, 0x1122334455667788, 1<<60)
		return r.Append(nil)
	case rdmap.OpAtomicResponse:
		r := rdmap.AtomicResponse{ID: 0xfeedface, Value: 1<<63 | 1}
		return r.Append(nil)
	}
	return []byte("some bytes")
}

// record writes a capture of a connection in which the two ends sent these
// pieces, each as one segment: what no program here sends, or not in such
// segments.
func record(t testing.TB, pieces []piece) (pcap string) {
	t.Helper()
	pcap = filepath.Join(t.TempDir(), "recorded.pcapng")
	testrig.Must(t, os.WriteFile(pcap, written(t, pieces, capture.MaxMSS), 0o600))
	return pcap
}

// terminated are the messages that a Terminate can be about.
func terminated(op rdmap.Opcode) *ddp.Segment {
	h := op.Header(1)
	h.Last, h.MSN = true, 7
	s, err := ddp.Parse(append(h.Append(nil), payloadOf(op)...))
	if err != nil {
		panic(err) // made just now
	}
	return &s
}

// TestTsharkTerminate has tshark read a Terminate with every code, about three
// kinds of messages.
//
// Proves P13, P14, P15
func TestTsharkTerminate(t *testing.T) {
	for _, op := range []rdmap.Opcode{rdmap.OpWrite, rdmap.OpSend, rdmap.OpReadRequest} {
		t.Run(op.String(), func(t *testing.T) {
			k := newTalk([2]bool{}, true)
			for code := range rdmap.Code(0x3000) {
				if code.Known() {
					term := rdmap.TerminateFor(code, terminated(op))
					h := rdmap.OpTerminate.Header(1)
					h.MSN = 1
					k.send(fromInitiator, h, term.Append(nil))
				}
			}
			wantAgreement(t, record(t, k.pieces))
		})
	}
}

// TestTsharkSegments has tshark read FPDUs with markers, and FPDUs without them that
// neither begin nor end with a segment.
//
// Proves F04, F07, R04
func TestTsharkSegments(t *testing.T) {
	for _, size := range []int{1, 100, 470, 488, 1001, 4096, 20000} {
		t.Run(fmt.Sprintf("markers, size %d", size), func(t *testing.T) {
			k := newTalk([2]bool{true, true}, true)
			k.ping(size)
			wantAgreement(t, record(t, k.pieces))
		})
	}
	for _, size := range []int{100, 1001, 4096} {
		for _, n := range []int{124, 536, 1460} {
			t.Run(fmt.Sprintf("size %d, segments of %d", size, n), func(t *testing.T) {
				k := newTalk([2]bool{}, true)
				k.ping(size)
				wantAgreement(t, record(t, slices.Concat(k.pieces[:2], cut(merge(k.pieces[2:]), n))))
			})
		}
	}
}

// TestTsharkGaps: what tshark is known not to read is no failure.
func TestTsharkGaps(t *testing.T) {
	for name, markers := range map[string][2]bool{
		"markers one way": {true, false}, "markers across segments": {true, true}, "short first part": {},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(markers, true)
			k.ping(100)
			wantAgreement(t, record(t, slices.Concat(k.pieces[:2], cut(merge(k.pieces[2:]), 100))))
		})
	}
	t.Run("marker between FPDUs", func(t *testing.T) {
		k := newTalk([2]bool{true, true}, true)
		k.ping(484) // an FPDU of 512 bytes, with the marker at its head
		wantAgreement(t, record(t, k.pieces))
	})
	t.Run("siw's Terminate", func(t *testing.T) {
		k := newTalk([2]bool{}, false)
		k.send(fromInitiator, rdmap.OpTerminate.Header(1), []byte{0x02, 0x02, 0, 0}) // 0x2002
		wantAgreement(t, record(t, k.pieces))
	})
}

// cut returns the pieces in pieces of at most n bytes.
func cut(pieces []piece, n int) (small []piece) {
	for _, p := range pieces {
		for part := range slices.Chunk(p.bytes, n) {
			small = append(small, piece{p.dir, part})
		}
	}
	return small
}
