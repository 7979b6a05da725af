package decode_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// wantTexts checks that each text is among those of the findings, once.
func (r *record) wantTexts(t *testing.T, texts ...string) {
	t.Helper()
	for _, want := range texts {
		n := 0
		for _, got := range r.texts {
			if strings.Contains(got, want) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q was found %d times, want once in %q", want, n, r.texts)
		}
	}
}

// TestDamagedOrder damages an FPDU in a stream with markers, by which those after it are
// located at once: they are told of in the order of the stream all the same, each
// byte is in one FPDU, and no bytes are lost.
func TestDamagedOrder(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(true)
	spoiled(s, fw, -5)
	for i := range 6 {
		s.message(fw, strings.Repeat("x", 100*i))
	}
	r := run(t, s.close())
	var at []string
	for _, f := range r.fpdus {
		at = append(at, strings.Fields(f)[2])
	}
	want := []string{"24-48", "48-112", "112-136", "136-260", "260-484", "484-812", "812-1240", "1240-1768"}
	if !slices.Equal(at, want) {
		t.Errorf("FPDUs at %q, want %q", at, want)
	}
	if h := &r.conns[0].Halves[fw]; h.Bad != 1 || h.Lost != 0 || h.FPDUs != 7 {
		t.Errorf("%d in error, %d bytes lost, %d FPDUs", h.Bad, h.Lost, h.FPDUs)
	}
}

// TestDamagedLastButOne damages the FPDU in front of the last one, after which the direction
// is closed: neither of the two is told of as bytes of an FPDU that is not whole.
func TestDamagedLastButOne(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(false)
	s.message(fw, "hello")
	b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 5000))
	b[3000] ^= 1
	s.send(fw, b)
	s.message(fw, "hello")
	r := run(t, s.close())
	if h := &r.conns[0].Halves[fw]; !slices.Equal(r.findings, []string{"error crc-wrong", "note found-again"}) ||
		h.Bad != 1 || h.FPDUs != 3 || h.Lost != 0 {
		t.Errorf("%q, %+v", r.texts, h)
	}
}

// TestCutOff closes a direction in the middle of an FPDU: the bytes that are there are
// counted, however many its ULPDU_Length announces.
func TestCutOff(t *testing.T) {
	for _, sent := range []int{1, 20, 30000} {
		s := newScript(t, 1440)
		s.startup(false)
		s.send(fw, s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 50000))[:sent])
		r := run(t, s.close())
		data := fmt.Sprintf("%d bytes", sent)
		if sent == 1 {
			data = "1 byte"
		}
		r.wantTexts(t, fmt.Sprintf("at 44: %s of an FPDU that is not whole", data))
		if h := &r.conns[0].Halves[capture.Forward]; h.Cut != uint64(min(sent-1, 1)) || h.Bad != 0 {
			t.Errorf("%d bytes: %+v", sent, h)
		}
	}
}

// TestCutOffInOtherMode closes a direction in the middle of an FPDU where FPDUs are in another
// mode, which may turn out only then: what is said to be left is what there is of that FPDU.
func TestCutOffInOtherMode(t *testing.T) {
	for _, n := range []int{4, 5, 10, 20} {
		for _, size := range []int{20, 600, 50000} {
			s := newScript(t, 1440)
			s.startup(false)
			s.mpa[bw] = mpa.NewWriter(false, false)
			for range n {
				s.message(bw, "hello")
			}
			s.send(bw, s.fpdu(bw, s.untagged(bw, rdmap.OpSend), make([]byte, size))[:30])
			r := run(t, s.close())
			r.wantTexts(t, fmt.Sprintf("fpdu-cut-off [Q15] <- at %d: 30 bytes of an FPDU that is not whole", 24+32*n))
			if h := &r.conns[0].Halves[bw]; h.Cut != 1 {
				t.Errorf("%d FPDUs and a part: %+v", n, h)
			}
		}
	}
}

// TestAllTold spoils captures at some places: of each byte of an iWARP connection it is
// told what it is part of, or that it is not decoded.
func TestAllTold(t *testing.T) {
	seeds := uint64(60)
	if testrig.Everything() {
		seeds = 200
	}
	for _, file := range [][]byte{busy(t, 1440, false), busy(t, 300, true), keyed(t)} {
		for seed := range seeds {
			spoilt := bytes.Clone(file)
			rng := rand.New(rand.NewPCG(seed, 0))
			for range 1 + seed%20 {
				spoilt[200+rng.IntN(len(file)-200)] = byte(rng.Uint32())
			}
			r := new(record)
			_, _ = decode.Run(bytes.NewReader(spoilt), decode.Config{}, r) // the file itself may be spoilt
			if len(r.untold) > 0 {
				t.Errorf("seed %d: nothing is told of bytes %q", seed, r.untold)
			}
		}
	}
}

// plain returns a startup frame of RFC 5044.
func plain(key string, markers, crc bool) []byte {
	return mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, M: markers, C: crc, Rev: 1})
}

// TestMarkerWithoutCRC has the marker at offset 512 point elsewhere, where no CRC tells
// that the FPDU is right but for that: it is found, and what follows is read on.
func TestMarkerWithoutCRC(t *testing.T) {
	s := newScript(t, 0)
	s.send(fw, plain(mpa.KeyRequest, true, false))
	s.send(bw, plain(mpa.KeyReply, true, false))
	s.operate(true, false)
	b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 600))
	b[512+3] += 8
	s.send(fw, b)
	for range 5 {
		s.message(fw, strings.Repeat("hello", 30))
	}
	r := run(t, s.close())
	r.wantTexts(t, "marker 2 of 2 in the FPDU at 0: got FPDUPTR 0x0104 want 0x01fc")
	if h := &r.conns[0].Halves[fw]; len(r.findings) != 1 || h.Bad != 1 || h.FPDUs != 5 || h.Lost != 0 {
		t.Errorf("%q, %+v", r.texts, h)
	}
}

// TestBadCRCBeforeMarker damages the first FPDU of a stream whose markers have not come
// yet: that is no reason to think that there are none.
func TestBadCRCBeforeMarker(t *testing.T) {
	s := newScript(t, 0)
	s.startup(true)
	spoiled(s, bw, -1)
	for range 20 {
		s.message(bw, "hello")
	}
	r := run(t, s.close())
	if h := &r.conns[0].Halves[bw]; !slices.Equal(r.findings, []string{"error crc-wrong", "note found-again"}) ||
		h.Bad != 1 || h.FPDUs != 20 {
		t.Errorf("%q, %+v", r.texts, h)
	}
}

// TestOtherMode has FPDUs without CRCs where they were agreed on: each is told of once.
func TestOtherMode(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	for range 6 {
		s.junked(bw, "hello")
	}
	r := run(t, s.close())
	if h := &r.conns[0].Halves[bw]; h.Bad != 1 || h.FPDUs != 5 || len(r.fpdus) != 7 {
		t.Errorf("%d in error, %d FPDUs, %q", h.Bad, h.FPDUs, r.fpdus)
	}
}

// TestBeforeTheAnswer has either end send an FPDU between Request and Reply: it is named,
// the startup is read on, and so is what follows.
func TestBeforeTheAnswer(t *testing.T) {
	for _, d := range []capture.Dir{fw, bw} {
		s := newScript(t, 0)
		s.send(fw, plain(mpa.KeyRequest, false, true))
		s.operate(false, true)
		s.message(d, "early")
		s.send(bw, plain(mpa.KeyReply, false, true))
		exchange(s)
		r := run(t, s.close())
		want := map[capture.Dir][]string{
			fw: {"bytes-before-the-answer [Q09] -> at 20: 32 bytes come after the Initiator's frame and before the answer"},
			bw: {"wrong-key [Q02] <- at 0: no answer to the start-req: got an FPDU",
				"not-decoded [] <- at 0: 32 bytes are not decoded"},
		}[d]
		r.wantTexts(t, want...)
		if len(r.findings) != len(want) || !r.conns[0].Agreed || r.reads != 2 || len(r.startups) != 2 {
			t.Errorf("%v: %q %q, %d Reads", d, r.texts, r.startups, r.reads)
		}
	}
}

// TestRevision3 has a Request of revision 3, which is not spoken of as one of revision 2.
func TestRevision3(t *testing.T) {
	e := mpa.AppendEnhanced(nil, &mpa.Enhanced{IRD: 4, ORD: 4})
	request := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, C: true, S: true, Rev: 3, PrivateData: e})
	s := newScript(t, 0)
	s.send(fw, request)
	s.send(bw, plain(mpa.KeyReply, false, true))
	r := run(t, s.close())
	r.wantTexts(t, "bad-answer [Q16] <- at 16: the Reply has S=0 and revision 1, and the Request S=1 and revision 3")

	s = newScript(t, 0)
	s.send(fw, request)
	testrig.Must(t, s.flow.Close(bw, s.tick()))
	r = run(t, s.close())
	r.wantTexts(t, "closed-at-startup [Q16] <- at 0: the Responder closed the connection without an answer")
	for _, text := range r.texts {
		if strings.Contains(text, "revision 2") {
			t.Error(text)
		}
	}
}

// TestStartupInPart has FPDUs follow a Reply without Request, and a startup that fails:
// it is not said that the startup is not in the capture.
func TestStartupInPart(t *testing.T) {
	s := newScript(t, 0)
	s.send(bw, plain(mpa.KeyReply, false, true))
	s.operate(false, true)
	exchange(s)
	half := run(t, s.close())
	half.wantTexts(t, "only one end's startup frame is in the capture: FPDUs were found by their form")

	s = newScript(t, 0)
	s.send(fw, enhanced(mpa.KeyRequest, mpa.Enhanced{}))
	s.send(bw, plain(mpa.KeyReply, false, true))
	s.operate(false, true)
	exchange(s)
	failed := run(t, s.close())
	failed.wantTexts(t, "the startup is not one that leads to Full Operation: FPDUs were found by their form")
	for _, r := range []*record{half, failed} {
		if len(r.fpdus) != 7 || strings.Contains(fmt.Sprint(r.conns[0].Summary()), "startup is not in the capture") {
			t.Errorf("%d FPDUs, %q", len(r.fpdus), r.conns[0].Summary())
		}
	}
}

// TestOneCounter numbers the messages of all queues together: that is what is said.
func TestOneCounter(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	for msn := uint32(1); msn <= 5; msn += 2 {
		s.msn[fw][0], s.msn[fw][1] = msn, msn+1
		s.message(fw, "hello")
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, SrcSTag: 7})
		s.respond(bw, 9, 0, nil)
	}
	r := run(t, s.close())
	r.wantTexts(t,
		"RDMA Read Request: MSN 2 on queue 1, where 1 is due: it is the number of the message if all queues are counted together",
		"Send: MSN 3 on queue 0, where 2 is due: it is the number",
		"RDMA Read Request: MSN 4 on queue 1, where 3 is due: it is the number",
		"Send: MSN 5 on queue 0, where 4 is due: it is the number",
		"RDMA Read Request: MSN 6 on queue 1, where 5 is due: it is the number")
}

// TestReadRequestForms names Read Requests that are not written as bytes in order.
func TestReadRequestForms(t *testing.T) {
	r := rdmap.ReadRequest{SinkSTag: 9, SinkTO: 1, SrcSTag: 7, Size: 10}
	swapped := r
	swapped.SinkSTag, swapped.SrcSTag, swapped.Size, swapped.SinkTO = 9<<24, 7<<24, 10<<24, 1<<56
	aligned := r.Append(nil)
	aligned = slices.Insert(aligned, 4, 0, 0, 0, 0)
	for _, c := range []struct {
		name    string
		request []byte
		want    []string
	}{
		{"32 bytes", aligned, []string{"error read-request-32-bytes [P09] -> at 44: RDMA Read Request of 32 bytes, where it has 28"}},
		{"host order", swapped.Append(nil), []string{
			"warning read-request-byte-order [P09] -> at 44: RDMA Read Request of 167772160 bytes: it would be 10 in the other byte order",
			"warning read-request-byte-order [P09] <- at 24: the Response goes to STag 0x00000009, which is the Request's SinkSTag in the other byte order",
			"error read-response [P28] <- at 24",
		}},
		{"right", r.Append(nil), nil},
		{"16 MiB", (&rdmap.ReadRequest{SinkSTag: 0x1234, SrcSTag: 7, Size: 1 << 24}).Append(nil),
			[]string{"error read-response [P28] <- at 24"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, 0)
			s.startup(false)
			s.segment(fw, s.untagged(fw, rdmap.OpReadRequest), c.request)
			s.respond(bw, 9, 1, make([]byte, 10))
			r := run(t, s.close())
			if r.wantTexts(t, c.want...); len(r.texts) != len(c.want) {
				t.Errorf("%q", r.texts)
			}
		})
	}
}
