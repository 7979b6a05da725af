package decode_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// blocks returns the blocks of a pcapng file.
func blocks(file []byte) (all [][]byte) {
	for len(file) > 0 {
		n := binary.LittleEndian.Uint32(file[4:])
		all, file = append(all, file[:n]), file[n:]
	}
	return all
}

// cutTo returns an Enhanced Packet Block with the first bytes of its packet, a multiple of four.
func cutTo(block []byte, n int) []byte {
	out := slices.Clone(block[:28+n])
	binary.LittleEndian.PutUint32(out[20:], uint32(n))
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)+4))
	return binary.LittleEndian.AppendUint32(out, uint32(len(out)+4))
}

// TestTwoQueues: a network card with several queues hands packets of the two directions to a capture in another order
// than they were sent in. Acknowledgments tell, and nobody is accused.
func TestTwoQueues(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(false)
	s.message(fw, "hello")
	for range 3 {
		s.read(bw, rdmap.ReadRequest{SinkSTag: 7, Size: 5, SrcSTag: 9})
		s.respond(fw, 7, 0, []byte("hello"))
	}
	s.message(bw, "good-bye")
	all := blocks(s.close())
	for i := 5; i+1 < len(all); i++ { // from the Request on: after the two blocks of the file and the handshake
		swapped := slices.Clone(all)
		swapped[i], swapped[i+1] = all[i+1], all[i]
		r := run(t, slices.Concat(swapped...))
		if c := r.conns[0]; len(r.serious()) > 0 || !c.Agreed || c.Failed() != "" {
			t.Errorf("packets %d and %d in turn: %q, %q", i-1, i, r.texts, c.Failed())
		}
	}
}

// TestAllAhead: all that the Responder has sent is captured before the Request. It had received the Request, and is not
// said to have closed the connection without an answer.
func TestAllAhead(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(false)
	s.message(fw, "hello")
	s.message(bw, "good-bye")
	testrig.Must(t, s.flow.Close(bw, s.tick()))
	all := blocks(s.close())
	const request, reply, rtr, hello, bye, fin, rest = 5, 6, 7, 8, 9, 10, 11
	ahead := append(slices.Clone(all[:request]), all[reply], all[bye], all[request], all[fin], all[rtr], all[hello])
	all = append(ahead, all[rest:]...)
	r := run(t, slices.Concat(all...))
	if c := r.conns[0]; len(r.serious()) > 0 || c.Failed() != "" {
		t.Errorf("%q, %q", r.texts, c.Failed())
	}
}

// TestLateRequest: a Read Request is captured after its Response. It is not taken for one that is outstanding, so that
// there are not more of these than the other end takes.
func TestLateRequest(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(false)
	late := len(blocks(s.fileBytes()))
	read := func() { s.read(bw, rdmap.ReadRequest{SinkSTag: 7, Size: 5, SrcSTag: 9}) }
	respond := func() { s.respond(fw, 7, 0, []byte("hello")) }
	for range 2 {
		read()
		respond()
	}
	for range 4 { // which is the IRD
		read()
	}
	for range 4 {
		respond()
	}
	all := blocks(s.close())
	all[late], all[late+1] = all[late+1], all[late]
	if r := run(t, slices.Concat(all...)); len(r.serious()) > 0 {
		t.Errorf("%q", r.texts)
	}
}

// TestLostReply: the capture lacks all that the Responder has sent but for its FIN. The Initiator acknowledged a Reply.
func TestLostReply(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(false)
	s.message(fw, "hello")
	testrig.Must(t, s.flow.Close(bw, s.tick()))
	all := blocks(s.close())
	const synAck, reply = 3, 6
	r := run(t, slices.Concat(slices.Delete(slices.Delete(all, reply, reply+1), synAck, synAck+1)...))
	if len(r.serious()) > 0 {
		t.Errorf("%q", r.texts)
	}
}

// TestCutRequest: the snap length cuts the Request off, and the capture lacks a packet, so that FPDUs are found by their
// form. Nothing is known of versions then but what these have.
func TestCutRequest(t *testing.T) {
	s := newScript(t, 1440)
	e := mpa.Enhanced{IRD: 4, ORD: 4}
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		s.send(capture.Dir(d), enhanced(key, e))
	}
	s.operate(false, true)
	for range 40 {
		s.write(fw, 1, 0, make([]byte, 500))
	}
	all := blocks(s.close())
	const request, lost = 5, 8
	all[request] = cutTo(all[request], 60)
	r := run(t, slices.Concat(slices.Delete(all, lost, lost+1)...))
	if c := r.conns[0]; len(r.serious()) > 0 || c.Version != 1 {
		t.Errorf("%q, version %d", r.texts, c.Version)
	}
}

// TestRequestFoundLate: the startup does not fit, and a cut packet hides a Read Request until more of its direction has
// come. The Response, which is found before, answers it.
func TestRequestFoundLate(t *testing.T) {
	s := newScript(t, 1440)
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		s.send(capture.Dir(d), mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, Rev: uint8(d)}))
	}
	s.operate(false, true)
	s.message(fw, "twenty bytes of text")
	s.read(fw, rdmap.ReadRequest{SinkSTag: 5, SinkTO: 0x1000, Size: 16, SrcSTag: 7, SrcTO: 0x2000})
	s.respond(bw, 5, 0x1000, make([]byte, 16))
	s.message(fw, "twenty bytes of text")
	all := blocks(s.close())
	const cut = 7
	all[cut] = cutTo(all[cut], 76)
	if r := run(t, slices.Concat(all...)); slices.Contains(r.serious(), "error read-response") {
		t.Errorf("%q", r.texts)
	}
}
