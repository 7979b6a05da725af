package decode_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
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
