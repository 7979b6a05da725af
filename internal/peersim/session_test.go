package peersim_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// message takes several FPDUs.
var message = bytes.Repeat([]byte("what is said "), 300)

// echo is a Responder that sends one message back.
func echo(b peers.Peer, conn net.Conn) error {
	defer conn.Close()
	s, err := peersim.Respond(&b, conn, peersim.Consumer{})
	if err != nil {
		return err
	}
	return s.Echo()
}

// first frames the first FPDU of a connection, with a CRC.
func first() *script.Link {
	l := script.NewLink(nil)
	l.Operate(script.Terms{CRC: true, Version: 1})
	return l
}

// firstWrite is a zero-length Write, firstRead a zero-length Read Request, firstSend
// a Send.
func firstWrite(stag uint32) []byte { return first().Tagged(rdmap.OpWrite, stag, 0, nil) }

func firstRead(stag uint32) []byte {
	return first().ReadRequest(rdmap.ReadRequest{SinkSTag: 5, SrcSTag: stag})
}

func firstSend(text string) []byte { return first().Message(rdmap.OpSend, []byte(text)) }

// TestFirstFPDU sends each peer, as Responder, something where it awaits an RTR
// indication.
func TestFirstFPDU(t *testing.T) {
	for _, c := range []struct {
		row, name string
		first     []byte
		up        bool
		why       string
	}{
		{"cxgb4", "Read", firstRead(1), true, ""},
		{"cxgb4", "Read of STag 0", firstRead(0), false, "STag 0"},
		{"cxgb4", "Write", firstWrite(1), false, "was to be read"},
		{"irdma", "Read of STag 0", firstRead(0), true, ""},
		{"qedr", "Write", firstWrite(1), true, ""},
		{"siw", "Write of STag 0", firstWrite(0), true, ""},
		{"siw", "Send", firstSend("hello"), true, ""},
	} {
		a, b := net.Pipe()
		up := make(chan error, 1)
		go func() {
			_, err := peersim.Respond(play(t, c.row), b, peersim.Consumer{})
			b.Close()
			up <- err
		}()
		reply := make([]byte, mpa.StartupHeaderLen+mpa.EnhancedLen)
		if _, err := a.Write(request(nil)); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(a, reply); err != nil {
			t.Error(err)
		}
		go a.Write(c.first)
		answer, _ := io.ReadAll(a)
		err := <-up
		switch {
		case c.up && err != nil:
			t.Errorf("%s, %s: %v", c.row, c.name, err)
		case c.up && (len(answer) > 0) != bytes.Equal(c.first[:3], firstRead(1)[:3]):
			t.Errorf("%s, %s: answered with % x", c.row, c.name, answer)
		case !c.up:
			wantRefusal(t, c.row+", "+c.name, err, peers.Resets, c.why)
		}
	}
}

func play(t *testing.T, name string) *peers.Peer {
	b := row(t, name)
	return &b
}

// TestTurnedDown has a Reply that an Initiator cannot live with: it opens the
// connection to say so.
func TestTurnedDown(t *testing.T) {
	high := reply(func(_ *mpa.StartupFields, e *mpa.Enhanced) { e.ORD = 129 })
	send := reply(func(_ *mpa.StartupFields, e *mpa.Enhanced) { e.B, e.C, e.D = true, false, false })
	for _, c := range []struct {
		row, name string
		reply     []byte
		code      []byte // of the Terminate
	}{
		{"cxgb4", "ORD 129", high, []byte{0x20, 0x06, 0, 0}},
		{"siw", "ORD 129", high, []byte{0x02, 0x06, 0, 0}},
		{"cxgb4", "RTR by Send", send, []byte{0x20, 0x07, 0, 0}},
		{"irdma", "RTR by Send", send, []byte{0x20, 0x07, 0, 0}},
	} {
		got, err := initiate(t, row(t, c.row), peersim.Consumer{}, -1, c.reply)
		wantRefusal(t, c.row+", "+c.name, err, peers.Closes, "")
		// Length, DDP header with MSN 1 of queue 2, Terminate, CRC.
		want := append([]byte{0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, c.code...)
		if len(got) != len(want)+4 || !bytes.HasPrefix(got, want) {
			t.Errorf("%s, %s:\ngot  % x\nwant % x, CRC", c.row, c.name, got, want)
		}
	}
}

// TestReadUnagreed has the peers that do so open a revision 1 connection by a Read.
func TestReadUnagreed(t *testing.T) {
	for _, name := range []string{"cxgb4", "freebsd", "windows-v1"} {
		b := row(t, name)
		b.Revision = 1
		r := plain(mpa.KeyReply, 1)
		want := firstRead(1)
		switch {
		case b.SMBDirect:
			r = plain(mpa.KeyReply, 1, 0, 0, 0, 1, 0, 0, 0, 1)
		case !b.FirstRead:
			want = nil
		}
		got, _ := initiate(t, b, peersim.Consumer{}, len(want), r)
		// The sink's STag and the CRC are the peer's own.
		if len(got) != len(want) || len(got) > 24 && !bytes.Equal(got[:20], want[:20]) {
			t.Errorf("%s:\ngot  % x\nwant % x", name, got, want)
		}
	}
}

// TestTimers has each peer wait in vain, in virtual time, and close the connection.
func TestTimers(t *testing.T) {
	for _, b := range peers.All() {
		for role, limit := range map[mpa.Role]time.Duration{mpa.RoleResponder: b.RequestTimeout,
			mpa.RoleInitiator: b.ReplyTimeout} {
			if limit == 0 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				a, c := net.Pipe()
				began := time.Now()
				played := make(chan error, 1)
				go func() {
					var err error
					if role == mpa.RoleInitiator {
						_, err = peersim.Initiate(&b, c, peersim.Consumer{})
					} else {
						_, err = peersim.Respond(&b, c, peersim.Consumer{})
					}
					played <- err
				}()
				_, _ = io.ReadAll(a)
				if waited := time.Since(began); waited != limit {
					t.Errorf("%s as %v waited %v, want %v", b.Name, role, waited, limit)
				}
				if err := <-played; !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s as %v: %v", b.Name, role, err)
				}
			})
		}
	}
}
