package peersim_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/mpa"
)

func row(t *testing.T, name string) peers.Peer {
	t.Helper()
	b, ok := peers.Lookup(name)
	if !ok {
		t.Fatalf("no row %q", name)
	}
	return b
}

// Turns are the other end of a peer: what it sends and takes, in turns.
type turns struct {
	first int      // bytes to take first: an Initiator's Request
	sends [][]byte // each a segment of its own
	takes int      // bytes to take then; -1 is all, up to the end
}

// run plays a peer against them, and returns what it sent last, and its error.
func (s turns) run(t *testing.T, play func(net.Conn) error) (got []byte, peer error) {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan error, 1)
	go func() {
		defer b.Close()
		done <- play(b)
	}()
	if _, err := io.ReadFull(a, make([]byte, s.first)); err != nil {
		t.Fatal(err)
	}
	for _, w := range s.sends {
		if _, err := a.Write(w); err != nil {
			break // the peer has had enough
		}
	}
	if s.takes < 0 {
		got, _ = io.ReadAll(a)
	} else {
		got = make([]byte, s.takes)
		n, _ := io.ReadFull(a, got)
		got = got[:n]
	}
	a.Close()
	return got, <-done
}

// respond plays a Responder that has got a Request.
func respond(t *testing.T, b peers.Peer, takes int, sends ...[]byte) (got []byte, peer error) {
	t.Helper()
	return turns{sends: sends, takes: takes}.run(t, func(conn net.Conn) error {
		_, err := peersim.Respond(&b, conn, peersim.Consumer{})
		return err
	})
}

// initiate plays an Initiator that has got a Reply.
func initiate(t *testing.T, b peers.Peer, c peersim.Consumer, takes int, sends ...[]byte) (got []byte, peer error) {
	t.Helper()
	first := mpa.StartupHeaderLen + len(c.PrivateData)
	switch {
	case b.Revision >= 2:
		first += mpa.EnhancedLen
	case b.SMBDirect:
		first += 8
	}
	return turns{first: first, sends: sends, takes: takes}.run(t, func(conn net.Conn) error {
		_, err := peersim.Initiate(&b, conn, c)
		return err
	})
}

// wantRefusal says what a peer should have done.
func wantRefusal(t *testing.T, what string, err error, end peers.End, why string) {
	t.Helper()
	var r *peersim.Refusal
	if !errors.As(err, &r) || r.End != end || !strings.Contains(r.Why, why) {
		t.Errorf("%s: got %v, want one that %v: %s", what, err, end, why)
	}
}

func frame(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

// request is a Request that nobody has anything against, with changes.
func request(change func(*mpa.StartupFields, *mpa.Enhanced)) []byte {
	return enhanced(mpa.KeyRequest, change)
}

// reply accepts it.
func reply(change func(*mpa.StartupFields, *mpa.Enhanced)) []byte {
	return enhanced(mpa.KeyReply, change)
}

func enhanced(key string, change func(*mpa.StartupFields, *mpa.Enhanced)) []byte {
	f := mpa.StartupFields{Key: key, C: true, S: true, Rev: 2}
	e := mpa.Enhanced{A: true, C: true, D: true, IRD: 8, ORD: 8}
	if change != nil {
		change(&f, &e)
	}
	if f.S {
		f.PrivateData = append(mpa.AppendEnhanced(nil, &e), f.PrivateData...)
	}
	return frame(f)
}
