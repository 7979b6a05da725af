package startup

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// wantFailure checks a startup that failed, and that it was counted.
func wantFailure(t *testing.T, name string, err error, want mpa.Failure) {
	t.Helper()
	var s *mpa.StartupError
	if !errors.As(err, &s) || s.Failure != want {
		t.Errorf("%s: got %v, want %v", name, err, want)
	}
}

func bits(f mpa.StartupFields, change func(*mpa.StartupFields)) []byte {
	change(&f)
	return rig.Frame(f)
}

// TestBadRequests sends a Responder what is no Request. It closes without a word
// and names what it got.
//
// Proves Q02, Q03, Q07, Q08, E14.
func TestBadRequests(t *testing.T) {
	key := func(k string) []byte {
		return bits(rig.Request(2), func(f *mpa.StartupFields) { f.Key = k })
	}
	for _, c := range []struct {
		name string
		sent []byte
		want mpa.Failure
		text string
	}{
		{"a Reply", rig.Frame(rig.Reply(2)), mpa.FailureResponderResponder, "both ends were started as Responder"},
		{"one bit off", key("MPA ID Req Framd"), mpa.FailureKey, "byte 15 differs"},
		{"lower case", key("mpa id req frame"), mpa.FailureKey, "only upper and lower case differ"},
		{"the Start Key", append([]byte(mpa.KeyStart), 0), mpa.FailureDialect, "Start Key of the first MPA drafts"},
		{"TLS", append([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), make([]byte, 99)...),
			mpa.FailureKey, "listen with TLS"},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"), mpa.FailureKey, "HTTP request"},
		{"an FPDU", rig.NewPeer(t, nil).Write(1, 0, make([]byte, 64)), mpa.FailureKey, "bad Key"},
		{"zeros", make([]byte, 64), mpa.FailureKey, "does not speak MPA"},
		{"revision 3 without S", bits(rig.Request(1), func(f *mpa.StartupFields) { f.Rev = 3 }),
			mpa.FailureRevision, "revision 3"},
		{"revision 255 without S", bits(rig.Request(1), func(f *mpa.StartupFields) { f.Rev = 255 }),
			mpa.FailureRevision, "revision 255"},
		{"PD_Length 513", bits(rig.Request(1), func(f *mpa.StartupFields) { f.PrivateData = make([]byte, 513) }),
			mpa.FailurePrivateData, "513 bytes"},
		{"PD_Length 65535", bits(rig.Request(1), func(f *mpa.StartupFields) { f.PDLength = 65535 }),
			mpa.FailurePrivateData, "65535 bytes"},
		{"enhanced, PD_Length 0", bits(rig.Request(2), func(f *mpa.StartupFields) { f.PrivateData = nil }),
			mpa.FailurePrivateData, "S=1"},
		{"enhanced, PD_Length 3", bits(rig.Request(2), func(f *mpa.StartupFields) { f.PrivateData = []byte("abc") }),
			mpa.FailurePrivateData, "S=1"},
	} {
		ln := rig.Listen(t, iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{Kind: mpa.KindNonPermissive})})
		p := rig.DialPeer(t, ln.Addr())
		p.Send(c.sent)
		p.WantClosed()
		if s := rig.WaitFailed(t, ln); s.Failed[c.want.String()] != 1 {
			t.Errorf("%s: counted %+v", c.name, s)
		}
		synctest.Test(t, func(t *testing.T) {
			p, outcome := respondTo(t.Context(), t,
				iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{Kind: mpa.KindNonPermissive})})
			go func() { _, _ = p.Conn.Write(c.sent) }()
			err := <-outcome
			wantFailure(t, c.name, err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: got %q, want %q in it", c.name, err, c.text)
			}
		})
	}
}

// TestGoodRequests sends Requests that look wrong and are not: what is reserved
// is not looked at, and a length is what it says.
//
// Proves Q08.
func TestGoodRequests(t *testing.T) {
	var all []mpa.StartupFields
	for bit := range 4 {
		f := rig.Request(2)
		f.Res = 1 << bit
		all = append(all, f)
	}
	r := rig.Request(2)
	r.R = true
	all = append(all, r)
	for _, n := range []int{1, 3, 4, 5, 251, 252, 253, 254, 255, 256, 257, 508, 511, 512} {
		all = append(all, rig.Request(1, rig.Pattern(n, 0)...))
		if n <= mpa.MaxEnhancedPrivateData {
			all = append(all, rig.Request(2, rig.Pattern(n, 0)...))
		}
	}
	ln := rig.Listen(t, iwarp.ListenConfig{})
	for _, f := range all {
		p, req := rig.Ask(t, ln, rig.Frame(f))
		qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
		if err != nil {
			t.Fatalf("%v: %v", req.MPA().Frame, err)
		}
		if got := p.WantFrame(mpa.KeyReply); got.R() || got.Res() != 0 {
			t.Errorf("answered %v to %v", got, req.MPA().Frame)
		}
		_ = qp.Abort()
	}
}

// TestBadReplies sends an Initiator what is no Reply to its Request.
//
// Proves Q02, Q03, Q07, Q08.
func TestBadReplies(t *testing.T) {
	for _, c := range []struct {
		name     string
		revision uint8
		sent     []byte
		want     mpa.Failure
		text     string
	}{
		{"a Request", 2, rig.Frame(rig.Request(2)), mpa.FailureInitiatorInitiator,
			"both ends were started as Initiator"},
		{"one bit off", 2, bits(rig.Reply(2), func(f *mpa.StartupFields) { f.Key = "MPA ID Rep Framg" }),
			mpa.FailureKey, "byte 15"},
		{"the Start Key", 2, append([]byte(mpa.KeyStart), 0), mpa.FailureInitiatorInitiator,
			"both ends were started as Initiator"},
		{"HTTP", 2, []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), mpa.FailureKey, "HTTP response"},
		{"a TLS alert", 2, []byte("\x15\x03\x01\x00\x02\x02\x46 and so on and on"), mpa.FailureKey, "expects TLS"},
		{"revision 0", 1, bits(rig.Reply(1), func(f *mpa.StartupFields) { f.Rev = 0 }),
			mpa.FailureRevision, "revision 0"},
		{"revision 3 without S", 1, bits(rig.Reply(1), func(f *mpa.StartupFields) { f.Rev = 3 }),
			mpa.FailureRevision, "revision 3"},
		{"enhanced to an unenhanced Request", 1, rig.Frame(rig.Reply(2)), mpa.FailureMismatch,
			"enhanced Reply to an unenhanced Request"},
		{"unenhanced to an enhanced Request", 2, rig.Frame(rig.Reply(1)), mpa.FailureMismatch, "unenhanced Reply"},
		{"PD_Length 513", 1, bits(rig.Reply(1), func(f *mpa.StartupFields) { f.PrivateData = make([]byte, 513) }),
			mpa.FailurePrivateData, "513"},
		{"enhanced, PD_Length 0", 2, bits(rig.Reply(2), func(f *mpa.StartupFields) { f.PrivateData = nil }),
			mpa.FailurePrivateData, "S=1"},
		{"enhanced, PD_Length 3", 2, bits(rig.Reply(2), func(f *mpa.StartupFields) { f.PrivateData = []byte("abc") }),
			mpa.FailurePrivateData, "S=1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := initiateTo(t.Context(), t,
				iwarp.Dialer{MPA: mpa.Offer{Dialect: rig.DialectOf(t, c.revision), Kind: mpa.KindNonPermissive}})
			p.WantFrame(mpa.KeyRequest)
			go func() { _, _ = p.Conn.Write(c.sent) }()
			err := <-outcome
			wantFailure(t, c.name, err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: got %q, want %q in it", c.name, err, c.text)
			}
			p.WantClosed()
		})
	}
}

// TestPeerStops has the peer close the connection after every byte of its
// startup frame.
//
// Proves Q08, R08.
func TestPeerStops(t *testing.T) {
	req, rep := rig.Frame(rig.Request(2, 'u', 'l', 'p')), rig.Frame(rig.Reply(2, 'u', 'l', 'p'))
	for cut := range len(req) {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{})
			p.SendInTwo(req[:cut], 0)
			p.Conn.Close()
			wantFailure(t, "Request cut off", <-outcome, mpa.FailureClosed)
		})
	}
	for cut := range len(rep) {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{})
			p.WantFrame(mpa.KeyRequest)
			p.SendInTwo(rep[:cut], 0)
			p.Conn.Close()
			wantFailure(t, "Reply cut off", <-outcome, mpa.FailureClosed)
		})
	}
	synctest.Test(t, func(t *testing.T) { // before the Request could be sent
		p, outcome := initiateTo(t.Context(), t, iwarp.Dialer{})
		p.Conn.Close()
		wantFailure(t, "closed at once", <-outcome, mpa.FailureClosed)
	})
}

// TestSplitFrames sends startup frames in single bytes and in two pieces cut at
// every byte.
//
// Proves Q13, Q14.
func TestSplitFrames(t *testing.T) {
	req := rig.Frame(rig.Request(2, 'u', 'l', 'p'))
	for cut := range len(req) + 1 {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{})
			p.SendInTwo(req, cut)
			if err := <-outcome; err != nil {
				t.Errorf("cut at %d: %v", cut, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p, outcome := respondTo(t.Context(), t, iwarp.ListenConfig{})
		for i := range req {
			p.Send(req[i : i+1])
		}
		rig.Should(t, <-outcome)
	})
}

// TestRejectedInAnotherRevision: a rejection of a revision that is not served is one, and TCP does not stay open after
// it.
//
// Proves Q07, Q10, N04.
func TestRejectedInAnotherRevision(t *testing.T) {
	for _, c := range []struct {
		offered, answered uint8
		kind              mpa.Kind
		closed            bool
	}{
		{1, 1, mpa.KindPermissive, false},
		{2, 1, mpa.KindPermissive, false},
		{1, 0, mpa.KindPermissive, false},
		{1, 0, mpa.KindNonPermissive, true},
		{1, 3, mpa.KindPermissive, true},
		{2, 255, mpa.KindPermissive, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := initiateTo(t.Context(), t,
				iwarp.Dialer{MPA: mpa.Offer{Dialect: rig.DialectOf(t, c.offered), Kind: c.kind}})
			p.WantFrame(mpa.KeyRequest)
			b := bits(rig.Reply(1), func(f *mpa.StartupFields) {
				f.R, f.Rev, f.PrivateData = true,
					c.answered, []byte("no")
			})
			go func() { _, _ = p.Conn.Write(b) }()
			err := <-outcome
			e, ok := errors.AsType[*iwarp.RejectError](err)
			if !ok || e.Closed != c.closed || string(e.PrivateData) != "no" {
				t.Fatalf("%+v: %v", c, err)
			}
			if c.closed {
				if _, err := e.Conn.Write([]byte("x")); err == nil {
					t.Errorf("%+v: TCP is open", c)
				}
				p.WantClosed()
				return
			}
			go func() { _, _ = e.Conn.Write([]byte("x")); _ = e.Conn.Close() }()
			if b, err := io.ReadAll(p.Conn); string(b) != "x" {
				t.Errorf("%+v: %q, %v", c, b, err)
			}
		})
	}
}
