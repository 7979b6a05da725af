package peersim_test

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// plain is a Request or Reply of RFC 5044.
func plain(key string, rev uint8, data ...byte) []byte {
	return frame(mpa.StartupFields{Key: key, C: true, Rev: rev, PrivateData: data})
}

func withoutA(_ *mpa.StartupFields, e *mpa.Enhanced) { e.A, e.C, e.D = false, false, false }

func withM(f *mpa.StartupFields, _ *mpa.Enhanced) { f.M = true }

// overlong returns frames of n bytes of private data after the enhanced data.
func overlong(n int) func(*mpa.StartupFields, *mpa.Enhanced) {
	return func(f *mpa.StartupFields, _ *mpa.Enhanced) { f.PrivateData = make([]byte, n) }
}

func glued(b []byte) []byte { return append(bytes.Clone(b), 0, 18) }

// refused is a startup frame that a peer refuses.
type refused struct {
	row, name string
	frame     []byte
	end       peers.End
	why       string
}

// TestBadRequests has each peer, as Responder, refuse what its row says.
func TestBadRequests(t *testing.T) {
	short := frame(mpa.StartupFields{Key: mpa.KeyRequest, S: true, Rev: 2})
	noCRC := frame(mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, PrivateData: []byte{0, 0, 0, 1, 0, 0, 0, 1}})
	for _, c := range []refused{
		{"siw", "revision 3", plain(mpa.KeyRequest, 3), peers.Closes, "revision 3"},
		{"siw", "a Reply", plain(mpa.KeyReply, 1), peers.Closes, "MPA ID Rep Frame"},
		{"siw", "markers", request(withM), peers.Rejects, "no markers"},
		{"siw", "no enhanced data", short, peers.Rejects, "no enhanced data"},
		{"siw", "257 bytes", request(overlong(253)), peers.Resets, "PD_Length 257 over 256"},
		{"siw", "an FPDU after it", glued(request(nil)), peers.Resets, "2 bytes after"},
		{"cxgb4", "revision 3", plain(mpa.KeyRequest, 3), peers.Resets, "revision 3"},
		{"cxgb4", "an FPDU after it", glued(request(nil)), peers.Resets, "2 bytes after"},
		{"cxgb4", "257 bytes", request(overlong(253)), peers.Resets, "PD_Length 257 over 256"},
		{"freebsd", "revision 2", request(nil), peers.Resets, "revision 2"},
		{"irdma", "revision 0", plain(mpa.KeyRequest, 0), peers.Resets, "revision 0"},
		{"irdma", "A=0", request(withoutA), peers.Resets, "A=0"},
		{"qedr", "no enhanced data", short, peers.Resets, "no enhanced data"},
		{"windows-v1", "revision 2", request(nil), peers.Resets, "revision 2"},
		{"windows-v1", "no depths", plain(mpa.KeyRequest, 1), peers.Resets, "no room for the depths"},
		{"windows-v1", "a depth of 0", plain(mpa.KeyRequest, 1, 0, 0, 0, 0, 0, 0, 0, 1),
			peers.Resets, "depths 0 and 1"},
		{"windows-v1", "little-endian depths", plain(mpa.KeyRequest, 1, 1, 0, 0, 0, 1, 0, 0, 0),
			peers.Resets, "depths 16777216"},
		{"windows-v1", "no CRC", noCRC, peers.Resets, "C=0"},
	} {
		_, err := respond(t, row(t, c.row), -1, c.frame)
		wantRefusal(t, c.row+", "+c.name, err, c.end, c.why)
	}
}

// TestRejects looks at siw's Reply to a Request for markers, as it was measured.
func TestRejects(t *testing.T) {
	got, err := respond(t, row(t, "siw"), -1, request(func(f *mpa.StartupFields,
		_ *mpa.Enhanced) {
		f.M, f.C = true, false
	}))
	wantRefusal(t, "siw", err, peers.Rejects, "markers")
	want := append([]byte(mpa.KeyReply), 0x30, 0x02, 0x00, 0x04, 0, 0, 0, 0)
	if !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
}

// TestConsumerRejects has each peer's consumer reject a connection, with private data.
func TestConsumerRejects(t *testing.T) {
	q, smb := request(nil), plain(mpa.KeyRequest, 1, 0, 0, 0, 1, 0, 0, 0, 1)
	for _, b := range peers.All() {
		first := q
		if b.Highest < 2 {
			first = smb
		}
		got, err := turns{sends: [][]byte{first}, takes: -1}.run(t, func(conn net.Conn) error {
			_, err := peersim.Respond(&b, conn, peersim.Consumer{PrivateData: []byte("no"), Reject: true})
			return err
		})
		wantRefusal(t, b.Name, err, peers.Rejects, "consumer")
		f, err := mpa.ParseStartup(got)
		if err != nil || !f.R() || f.Rev() != b.Highest || !bytes.HasSuffix(f.ULPData(), []byte("no")) {
			t.Errorf("%s: got %v (%v)", b.Name, f, err)
		}
	}
}

// TestReplies looks at accepting Replies, byte by byte.
func TestReplies(t *testing.T) {
	offers := func(b, c, d bool) func(*mpa.StartupFields, *mpa.Enhanced) {
		return func(_ *mpa.StartupFields, e *mpa.Enhanced) { e.B, e.C, e.D = b, c, d }
	}
	for _, c := range []struct {
		row, name string
		request   []byte
		want      []byte // after the key
	}{
		{"siw", "Write and Read offered", request(nil), []byte{0x50, 2, 0, 4, 0x80, 128, 0x80, 8}},
		{"siw", "Read offered", request(offers(false, false, true)), []byte{0x50, 2, 0, 4, 0x80, 128, 0x40, 8}},
		{"siw", "Send offered", request(offers(true, false, false)), []byte{0x50, 2, 0, 4, 0x80, 128, 0x80, 8}},
		{"siw", "A=0", request(withoutA), []byte{0x50, 2, 0, 4, 0, 128, 0, 8}},
		{"siw", "no negotiation wanted", request(func(_ *mpa.StartupFields, e *mpa.Enhanced) {
			e.IRD, e.ORD = 0x3fff,
				0x3fff
		}), []byte{0x50, 2, 0, 4, 0x80, 128, 0x80, 128}},
		{"siw", "reserved bits", frame(mpa.StartupFields{Key: mpa.KeyRequest, S: true, R: true, Res: 0xa, Rev: 1}),
			[]byte{0x3a, 1, 0, 0}},
		{"cxgb4", "Write offered", request(offers(false, true, false)), []byte{0x50, 2, 0, 4, 0x80, 32, 0x40, 8}},
		{"irdma", "Write and Read offered", request(nil), []byte{0x50, 2, 0, 4, 0x80, 32, 0x40, 8}},
		{"irdma", "no negotiation wanted", request(func(_ *mpa.StartupFields, e *mpa.Enhanced) {
			e.IRD, e.ORD = 0x3fff,
				0x3fff
		}), []byte{0x50, 2, 0, 4, 0xbf, 0xff, 0x7f, 0xff}},
		{"qedr", "Write and Read offered", request(nil), []byte{0x50, 2, 0, 4, 0x80, 32, 0xc0, 8}},
		{"qedr", "nothing offered", request(offers(false, false, false)), []byte{0x50, 2, 0, 4, 0xc0, 32, 0xc0, 8}},
		{"freebsd", "revision 1", plain(mpa.KeyRequest, 1), []byte{0x40, 1, 0, 0}},
		{"windows-v1", "revision 1", plain(mpa.KeyRequest, 1, 0, 0, 0, 4, 0, 0, 0, 5),
			[]byte{0x40, 1, 0, 8, 0, 0, 0, 16, 0, 0, 0, 4}},
	} {
		want := append([]byte(mpa.KeyReply), c.want...)
		if got, _ := respond(t, row(t, c.row), len(want), c.request); !bytes.Equal(got, want) {
			t.Errorf("%s, %s:\ngot  % x\nwant % x", c.row, c.name, got, want)
		}
	}
}

// TestBadReplies has each peer, as Initiator, refuse what its row says.
func TestBadReplies(t *testing.T) {
	readWithoutIRD := func(_ *mpa.StartupFields, e *mpa.Enhanced) { e.C, e.IRD = false, 0 }
	for _, c := range []refused{
		{"siw", "revision 1", plain(mpa.KeyReply, 1), peers.Closes, "without enhanced data"},
		{"siw", "revision 2 without S", plain(mpa.KeyReply, 2), peers.Closes, "without enhanced data"},
		{"siw", "markers", reply(withM), peers.Rejects, "no markers"},
		{"siw", "257 bytes", reply(overlong(253)), peers.Crashes, "PD_Length 257 over 256"},
		{"siw", "no enhanced data", frame(mpa.StartupFields{Key: mpa.KeyReply, S: true, Rev: 2}),
			peers.Crashes, "PD_Length 0"},
		{"siw", "an FPDU after it", glued(reply(withoutA)), peers.Resets, "2 bytes after"},
		{"siw", "a Request", request(nil), peers.Closes, "MPA ID Req Frame"},
		{"cxgb4", "an FPDU after it", glued(reply(nil)), peers.Resets, "2 bytes after"},
		{"irdma", "A=0", reply(withoutA), peers.Resets, "A=0"},
		{"irdma", "Read and IRD 0", reply(readWithoutIRD), peers.Resets, "IRD 0"},
		{"irdma", "a higher ORD", reply(func(_ *mpa.StartupFields, e *mpa.Enhanced) { e.ORD = 33 }),
			peers.Resets, "ORD 33 over"},
		{"freebsd", "a higher revision", plain(mpa.KeyReply, 2), peers.Resets, "revision 2"},
		{"windows-v1", "no depths", plain(mpa.KeyReply, 1), peers.Resets, "no room for the depths"},
		{"windows-v1", "no CRC", frame(mpa.StartupFields{Key: mpa.KeyReply, Rev: 1,
			PrivateData: []byte{0, 0, 0, 1, 0, 0, 0, 1}}), peers.Resets, "C=0"},
	} {
		_, err := initiate(t, row(t, c.row), peersim.Consumer{}, -1, c.frame)
		wantRefusal(t, c.row+", "+c.name, err, c.end, c.why)
	}
}

// TestSplit sends a Request in two segments.
func TestSplit(t *testing.T) {
	q := request(nil)
	for cut := 1; cut < len(q); cut++ {
		_, err := respond(t, row(t, "irdma"), -1, q[:cut], q[cut:])
		wantRefusal(t, "irdma", err, peers.Resets, "segment of its own")
		got, _ := respond(t, row(t, "siw"), mpa.StartupHeaderLen, q[:cut], q[cut:])
		if !bytes.HasPrefix(got, []byte(mpa.KeyReply)) {
			t.Errorf("siw, cut at %d: got %q", cut, got)
		}
	}
}

// TestShortKey sends what may be a wrong key, but is no whole head of a frame: the peer
// waits for the rest.
func TestShortKey(t *testing.T) {
	key := mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true})
	for _, b := range peers.All() {
		got, err := respond(t, b, 0, key)
		var r *peersim.Refusal
		if split := b.Split == peers.Resets; len(got) > 0 || !errors.As(err, &r) || split != (r.End == peers.Resets) {
			t.Errorf("%s: got % x, and %v", b.Name, got, err)
		}
		_, err = respond(t, b, -1, append(key, 0, 0, 0, 0))
		wantRefusal(t, b.Name, err, peers.Closes, "key")
	}
}

// TestPairs connects each peer with each other one, and has a message go both ways
// where that comes up. The Responder is a row as well.
func TestPairs(t *testing.T) {
	// What keeps an Initiator and a Responder apart.
	apart := map[[2]string]string{
		{"siw", "irdma"}:   "A=0", // siw's default
		{"siw", "freebsd"}: "revision 2",
	}
	for _, ini := range peers.All() {
		for _, res := range peers.All() {
			if slices.Contains([]string{ini.Name, res.Name}, "windows-v1") && ini.Name != res.Name {
				continue // nobody else has the depths in private data
			}
			if ini.Name == "qedr" && res.Name == "freebsd" {
				continue // whether qedr falls back is not known
			}
			why, stay := apart[[2]string{ini.Name, res.Name}]
			err := pair(t, ini, res)
			switch {
			case !stay && err != nil:
				t.Errorf("%s to %s: %v", ini.Name, res.Name, err)
			case stay:
				wantRefusal(t, ini.Name+" to "+res.Name, err, peers.Resets, why)
			}
		}
	}
}

// pair returns the Responder's error, or else the Initiator's.
func pair(t *testing.T, ini, res peers.Peer) error {
	t.Helper()
	answers := make(chan error, 2)
	last := func() (net.Conn, error) {
		a, b, err := testrig.TCPPair(t.Context())
		if err == nil {
			go func() { answers <- echo(res, b) }()
		}
		return a, err
	}
	s, fellBack, err := peersim.Dial(&ini, last, peersim.Consumer{})
	if fellBack {
		if first := <-answers; first == nil {
			t.Errorf("%s fell back from %s for no reason", ini.Name, res.Name)
		}
	}
	if err == nil {
		err = errors.Join(s.Ask(message), s.Close())
	}
	if answer := <-answers; answer != nil {
		return answer
	}
	return err
}
