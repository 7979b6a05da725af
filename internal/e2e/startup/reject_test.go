package startup

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestReject rejects a connection with data, after which both sides use TCP as a
// stream of bytes: those that followed the Reply at once too.
//
// Proves Q10, Q13, E03, E05.
func TestReject(t *testing.T) {
	for _, revision := range []uint8{1, 2} {
		ln := rig.Listen(t, iwarp.ListenConfig{})
		served := make(chan error, 1)
		go func() { served <- rejectAndTalk(t, ln) }()
		d := iwarp.Dialer{KeepRejected: true, MPA: mpa.Offer{Dialect: rig.DialectOf(t, revision), IRD: 3, ORD: 9,
			PrivateData: []byte("let me in")}}
		_, err := d.Dial(rig.Within(t), "tcp", ln.Addr().String())
		var rejected *iwarp.RejectError
		if !errors.As(err, &rejected) {
			t.Fatalf("revision %d: %v", revision, err)
		}
		if string(rejected.PrivateData) != "not you" || rejected.Enhanced != (revision == 2) {
			t.Errorf("revision %d: %v", revision, rejected)
		}
		if revision == 2 && (rejected.PeerIRD != 5 || rejected.PeerORD != 6) {
			t.Errorf("told IRD %d and ORD %d", rejected.PeerIRD, rejected.PeerORD)
		}
		talk(t, rejected.Conn, "the client", "the server")
		rig.Should(t, <-served)
		if s := ln.Stats(); s.Rejected != 1 || s.Established != 0 || len(s.Failed) != 0 {
			t.Errorf("counted %+v", s)
		}
	}
}

func rejectAndTalk(t testing.TB, ln *iwarp.Listener) error {
	req, err := ln.Accept(rig.Within(t))
	if err != nil {
		return err
	}
	if string(req.PrivateData()) != "let me in" {
		return errors.New("other private data")
	}
	c, err := req.RejectKeep([]byte("not you"), 5, 6)
	if err != nil {
		return err
	}
	if err := req.Reject(nil); !errors.Is(err, iwarp.ErrBadState) {
		return errors.New("rejected twice")
	}
	talk(t, c, "the server", "the client")
	return nil
}

// talk sends a line over TCP, reads one, and closes.
func talk(t testing.TB, c net.Conn, say, hear string) {
	t.Helper()
	defer c.Close()
	if _, err := io.WriteString(c, say); err != nil {
		t.Error(err)
	}
	b := make([]byte, len(hear))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != hear {
		t.Errorf("heard %q (%v), want %q", b, err, hear)
	}
}

// TestRejectThenClose has a peer reject and close, by FIN or by RST, with data
// after its Reply: the rejection and the data are there all the same.
//
// Proves Q10, Q13.
func TestRejectThenClose(t *testing.T) {
	for _, reset := range []bool{false, true} {
		ln := rig.ListenTCP(t)
		dialed := (&rig.End{T: t}).Dials(iwarp.Dialer{KeepRejected: true}, ln)
		p := rig.AcceptRequest(t, ln)
		f := rig.Reply(2, 'n', 'o')
		f.R = true
		p.Send(append(rig.Frame(f), "and more"...))
		if !reset {
			p.Conn.Close()
		}
		var rejected *iwarp.RejectError
		if err := <-dialed; !errors.As(err, &rejected) || string(rejected.PrivateData) != "no" {
			t.Fatal(err)
		}
		more := make([]byte, 8)
		if _, err := io.ReadFull(rejected.Conn, more); err != nil || string(more) != "and more" {
			t.Errorf("read %q (%v)", more, err)
		}
		if reset {
			_ = p.Link.Reset()
			if _, err := rejected.Conn.Read(more); err == nil {
				t.Error("no error after a RST")
			}
		}
		rejected.Conn.Close()
	}
}

// TestRequestAnsweredOnce lets one of several answers through.
func TestRequestAnsweredOnce(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	_, req := rig.Ask(t, ln, rig.Frame(rig.Request(2)))
	qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
	rig.Must(t, err)
	if err := req.Reject(nil); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Reject: %v", err)
	}
	if err := req.Close(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Close: %v", err)
	}
	rig.Should(t, qp.Abort())
}

// TestRejectedDialLeavesNothing: the error of a Dial that is dropped holds no descriptor. With KeepRejected it hands
// over TCP.
func TestRejectedDialLeavesNothing(t *testing.T) {
	refuse := func(mpa.Negotiated) error { return errors.New("not this one") }
	for name, c := range map[string]struct {
		dialer  iwarp.Dialer
		rejects bool
	}{
		"rejected": {iwarp.Dialer{}, true},
		"refused":  {iwarp.Dialer{Verify: refuse}, false},
		"kept":     {iwarp.Dialer{KeepRejected: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ln := rig.Listen(t, iwarp.ListenConfig{})
			served := make(chan net.Conn, 1)
			go func() {
				defer close(served)
				req, err := ln.Accept(rig.Within(t))
				rig.Should(t, err)
				if !c.rejects {
					_, _ = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
					return
				}
				conn, err := req.RejectKeep(nil, 0, 0)
				rig.Should(t, err)
				served <- conn
			}()
			_, err := c.dialer.Dial(rig.Within(t), "tcp", ln.Addr().String())
			conn := connOf(t, err)
			_, err = conn.Write([]byte("?"))
			if kept := c.dialer.KeepRejected; (err == nil) != kept || !kept && !errors.Is(err, net.ErrClosed) {
				t.Errorf("kept %v: %v", kept, err)
			}
			conn.Close()
			if theirs := <-served; theirs != nil {
				_, _ = io.Copy(io.Discard, theirs) // ends: nobody keeps our end
				theirs.Close()
			}
		})
	}
}

// connOf is the connection in an error of Dial.
func connOf(t *testing.T, err error) net.Conn {
	t.Helper()
	var rejected *iwarp.RejectError
	var refused *iwarp.VerifyError
	switch {
	case errors.As(err, &rejected):
		return rejected.Conn
	case errors.As(err, &refused):
		return refused.Conn
	}
	t.Fatal(err)
	return nil
}
