package probe_test

import (
	"bufio"
	gocmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// responder is one of our endpoints, configured in some way.
type responder struct {
	kind     mpa.Kind
	dialects []mpa.Dialect
	offer    mpa.Answer
	reject   bool
	patience time.Duration
}

// config is what it serves a connection with.
func (r responder) config(rnic *iwarp.RNIC) *iwarp.ListenConfig {
	return &iwarp.ListenConfig{
		RNIC: rnic, Dialects: r.dialects, Markers: r.offer.Markers, NoCRC: r.offer.NoCRC, RequestTimeout: r.patience,
	}
}

// answer answers a Request, and returns what must end before the connection is gone.
func (r responder) answer(req *iwarp.Request) (ended <-chan struct{}) {
	if !r.reject {
		qp, err := req.Accept(context.Background(), iwarp.AcceptConfig{MPA: r.offer, QP: iwarp.QPConfig{Linger: -1}})
		if err != nil {
			return nil
		}
		return qp.Done()
	}
	if c, err := req.RejectKeep([]byte("not today"), 0, 0); err != nil { // a Start Key has no room for it
		_ = req.Close()
	} else if c != nil {
		_ = c.Close()
	}
	return nil
}

// probed asks it in virtual time.
func (r responder) probed(t *testing.T, cfg probe.Config) *probe.Report {
	t.Helper()
	return probing(t, cfg, func(c net.Conn) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{Kind: r.kind})
		defer rnic.Close()
		req, err := r.config(rnic).Respond(context.Background(), c, nil)
		if err != nil {
			return
		}
		if ended := r.answer(req); ended != nil {
			<-ended
		}
	})
}

// listen serves on loopback until the test ends, and returns the address.
func (r responder) listen(t *testing.T) string {
	t.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Kind: r.kind})
	ln, err := r.config(rnic).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			req, err := ln.Accept(context.Background())
			if err != nil {
				return
			}
			r.answer(req)
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
		_ = rnic.Close()
	})
	return ln.Addr().String()
}

func ask(t *testing.T, addr string, cfg probe.Config) *probe.Report {
	t.Helper()
	cfg.Addr, cfg.Timeout = addr, testrig.Soon
	r, err := probe.Run(t.Context(), cfg)
	testrig.Must(t, err)
	return r
}

// findings is what a report says that was configured.
type findings struct {
	Dialects     []mpa.Dialect
	Kind         mpa.Kind
	Markers, CRC string
	RTR          []string // answers to write, read, send, all, none
	Depths       []string // answers to 0, 1, 16, 16382, not negotiated
	PrivateData  probe.PrivateData
	Preset       string
}

func found(r *probe.Report) findings {
	f := findings{Dialects: r.Dialects, Kind: r.Kind, Markers: r.Markers, CRC: r.CRC,
		PrivateData: r.PrivateData, Preset: r.Preset}
	for _, a := range r.RTR {
		f.RTR = append(f.RTR, a.Answered)
	}
	for _, d := range r.Depths {
		f.Depths = append(f.Depths, d.IRD.String()+"/"+d.ORD.String())
	}
	return f
}

const none = "not negotiated"

// usual is what a responder with its defaults is found to be.
func usual() findings {
	return findings{
		Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRevision0, mpa.DialectStartKey},
		Kind:     mpa.KindPermissive,
		Markers:  "asks for none, sends them if asked", CRC: "wants them (C=1) even if the Request does not",
		RTR:         []string{"write", "read", "send", "send|write|read", "send|write|read"},
		Depths:      []string{"32/0", "32/1", "32/16", "128/32", none + "/" + none},
		PrivateData: probe.PrivateData{Most: 508, Allowed: 508},
	}
}

// TestOurs asks our own endpoint, in each kind and dialect, and finds just what was
// configured. The one that knows the least is asked over TCP, where it sees bytes that come
// too early.
func TestOurs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		responder
		want func(*findings)
	}{
		{"defaults", responder{}, func(*findings) {}},
		{"all dialects", responder{dialects: mpa.Dialects()}, func(f *findings) {
			f.Dialects = []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr,
				mpa.DialectRevision0, mpa.DialectStartKey}
		}},
		{"non-permissive", responder{kind: mpa.KindNonPermissive}, func(f *findings) {
			f.Dialects, f.Kind = []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044}, mpa.KindNonPermissive
		}},
		{"RFC 6581 only", responder{dialects: []mpa.Dialect{mpa.DialectRFC6581}}, func(f *findings) {
			f.Dialects, f.Kind = []mpa.Dialect{mpa.DialectRFC6581}, mpa.KindNonPermissive
		}},
		{"revision 1 only", responder{kind: mpa.KindNonPermissive,
			dialects: []mpa.Dialect{mpa.DialectRFC5044}}, func(f *findings) {
			f.Dialects, f.Kind = []mpa.Dialect{mpa.DialectRFC5044}, mpa.KindNonPermissive
			f.RTR, f.Depths, f.PrivateData = nil, nil, probe.PrivateData{Most: 512, Allowed: 512}
			f.Preset = "freebsd" // little but its limits tells it from that
		}},
		{"RDMAC", responder{kind: mpa.KindRDMAC}, func(f *findings) {
			f.Dialects, f.Kind = []mpa.Dialect{mpa.DialectRevision0, mpa.DialectStartKey}, mpa.KindRDMAC
			f.RTR, f.Depths, f.PrivateData = nil, nil, probe.PrivateData{Most: 512, Allowed: 512}
			f.Markers = "asks for them, sends them if asked"
		}},
		{"markers", responder{offer: mpa.Answer{Markers: true}},
			func(f *findings) { f.Markers = "asks for them, sends them if asked" }},
		{"no CRC", responder{offer: mpa.Answer{NoCRC: true}},
			func(f *findings) { f.CRC = "does without if the Request wants none (C=0)" }},
		{"RTR Read", responder{offer: mpa.Answer{RTR: mpa.RTRRead}}, func(f *findings) {
			f.RTR = []string{"read", "read", "read", "read", "read"}
		}},
		{"all RTR, always", responder{offer: mpa.Answer{AllRTR: true}}, func(f *findings) {
			const all = "send|write|read"
			f.RTR = []string{all, all, all, all, all}
		}},
		{"depths", responder{offer: mpa.Answer{IRD: 2, ORD: 3, MaxIRD: 4}}, func(f *findings) {
			f.Depths = []string{"2/0", "2/1", "4/3", "4/3", none + "/" + none}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := usual()
			c.want(&want)
			var r *probe.Report
			if slices.Equal(c.dialects, []mpa.Dialect{mpa.DialectRFC5044}) {
				r = ask(t, c.listen(t), probe.Config{})
			} else {
				r = c.probed(t, probe.Config{})
			}
			if diff := cmp.Diff(want, found(r)); diff != "" {
				t.Errorf("%s\n%s", diff, text(t, r))
			}
		})
	}
}

func text(t *testing.T, r *probe.Report) string {
	t.Helper()
	var b strings.Builder
	testrig.Must(t, r.Report().WriteText(&b, false))
	return b.String()
}

// TestResembles: our endpoint is like itself, here over TCP.
func TestResembles(t *testing.T) {
	t.Parallel()
	r := ask(t, responder{}.listen(t), probe.Config{PrivateData: []byte("let me in")})
	if m := r.Resembles[0]; m.Name != "iwarp" || m.Same != m.Compared || m.Compared < 10 {
		t.Errorf("%+v", r.Resembles)
	}
	if s := text(t, r); !strings.Contains(s, "No preset is needed") ||
		!strings.Contains(s, "iwarp                  17 of 17 known features") {
		t.Error(s)
	}
}

// TestNotMPA asks ports on which something else listens, or nothing.
func TestNotMPA(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-something\r\n"))
			_ = c.Close()
		}
	}()
	r := ask(t, ln.Addr().String(), probe.Config{})
	// The end of such a connection may overtake the banner.
	if q := r.Revisions.One; q.Outcome != probe.Foreign && q.Outcome != probe.Reset ||
		len(r.Dialects) != 0 || r.Preset != "" {
		t.Error(text(t, r))
	}
	_ = ln.Close()
	if _, err := probe.Run(t.Context(), probe.Config{Addr: ln.Addr().String()}); !errors.Is(err, probe.ErrUnreachable) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := probe.Run(t.Context(), probe.Config{PrivateData: make([]byte, 509)}); err == nil {
		t.Error("509 bytes of private data")
	}
}

// TestHTTP asks a server that waits for the end of a line, and answers what it then has
// in its own protocol.
func TestHTTP(t *testing.T) {
	r := probing(t, probe.Config{}, func(c net.Conn) {
		if _, err := bufio.NewReader(c).ReadString('\n'); errors.Is(err, io.EOF) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
		}
	})
	if q := r.Revisions.One; !r.NotMPA || q.Outcome != probe.Foreign ||
		!strings.Contains(q.Answer, `"HTTP/1.1 400 Bad Request`) || len(r.Questions) > 3 {
		t.Error(text(t, r))
	}
	if s := text(t, r); !strings.Contains(s, "none: this is not MPA") || !strings.Contains(s, "speaks MPA") {
		t.Error(s)
	}
	for _, q := range r.Questions[1:] {
		if q.Milliseconds > probe.DefaultTimeout.Seconds()*1000/5 {
			t.Errorf("%s: waited %v ms for a word before the end of the line", q.Name, q.Milliseconds)
		}
	}
	b, err := json.Marshal(r)
	if err != nil || strings.Contains(string(b), `"kind":`) {
		t.Errorf("an RNIC's kind of what is none: %v: %s", err, b)
	}
}

// TestEcho asks a server that sends back what it gets: a Start Key is not taken for its own.
func TestEcho(t *testing.T) {
	r := probing(t, probe.Config{}, func(c net.Conn) { _, _ = io.Copy(c, c) })
	if !r.Echo || !r.NotMPA || len(r.Dialects) > 0 || len(r.Questions) > 3 {
		t.Error(text(t, r))
	}
	if s := text(t, r); !strings.Contains(s, "none: the peer sends our own bytes back: this is not MPA") {
		t.Error(s)
	}
}

// TestIncomplete asks a server that begins a Reply, and does not end it: it is no echo of the Request, with which a
// Reply begins, and no other protocol.
func TestIncomplete(t *testing.T) {
	const reply = mpa.KeyReply + "\x40\x02\x00\x04"
	for _, c := range []struct {
		sends string
		piece int           // bytes sent at once; zero: all
		every time.Duration // between two pieces
		ends  bool
		want  string
	}{
		{sends: "M", want: `incomplete: 1 of at least 20 bytes of a Reply Frame: "M"`},
		{sends: "MPA ID Re", want: `incomplete: 9 of at least 20 bytes of a Reply Frame: "MPA ID Re"`},
		{sends: reply, want: `incomplete: 20 of 24 bytes of a Reply Frame: "MPA ID Rep Frame@\x02\x00\x04"`},
		{sends: reply, ends: true, want: `\x04", and then the connection is closed`},
		{sends: reply, piece: 1, every: 400 * time.Millisecond,
			want: `incomplete: 7 of at least 20 bytes of a Reply Frame: "MPA ID "`},
	} {
		r := probing(t, probe.Config{}, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 100))
			for _, piece := range script.Split([]byte(c.sends), gocmp.Or(c.piece, len(c.sends))) {
				time.Sleep(c.every)
				_, _ = conn.Write(piece)
			}
			if !c.ends {
				_, _ = io.Copy(io.Discard, conn)
			}
		})
		s := text(t, r)
		if r.NotMPA || r.Echo || len(r.Dialects) > 0 || r.Revisions.One.Outcome != probe.Incomplete ||
			!strings.Contains(s, c.want) || !strings.Contains(s, "no answer came whole") {
			t.Errorf("%q: %t, %t\n%s", c.sends, r.NotMPA, r.Echo, s)
		}
	}
}

// TestSilentEnd asks a server that only closes: that is little to go by, and says nothing of an
// RNIC or of an implementation.
func TestSilentEnd(t *testing.T) {
	r := probing(t, probe.Config{}, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	if len(r.Resembles) > 0 || r.Kind != 0 || r.NotMPA || r.Preset != "" {
		t.Errorf("%+v", r)
	}
	if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), "null") ||
		!strings.Contains(string(b), `"dialects":[]`) {
		t.Errorf("what was not asked is left out: %v: %s", err, b)
	}
	s := text(t, r)
	for _, word := range []string{"permissive", "Resembles", "known features", "asks for none"} {
		if strings.Contains(s, word) {
			t.Errorf("says %q of it:\n%s", word, s)
		}
	}
	if !strings.Contains(s, "no Request was answered") || !strings.Contains(s, "Nothing there speaks MPA") {
		t.Error(s)
	}
}

// TestPatience finds out when a responder gives up.
func TestPatience(t *testing.T) {
	t.Parallel()
	r := responder{patience: time.Second}.probed(t, probe.Config{Slow: true})
	if q := r.NoRequest; q == nil || q.Outcome != probe.Closed || q.Milliseconds != 1000 {
		t.Errorf("%+v", q)
	}
}

// TestJSON: the report survives a round trip, with names that say what they are.
func TestJSON(t *testing.T) {
	t.Parallel()
	r := responder{}.probed(t, probe.Config{Network: "usertcp"})
	b, err := json.Marshal(r)
	testrig.Must(t, err)
	var m struct {
		Network   string
		Dialects  []string
		Kind      string
		Revisions map[string]struct{ Outcome, Answer string }
		Depths    []struct{ Asked, IRD, ORD *uint16 }
		Questions []json.RawMessage
	}
	testrig.Must(t, json.Unmarshal(b, &m))
	if diff := cmp.Diff([]string{"rfc6581", "rfc5044", "revision0", "startkey"},
		m.Dialects); diff != "" || m.Kind != "permissive" {
		t.Error(m.Kind, diff)
	}
	if a := m.Revisions["2_peer_to_peer"]; a.Outcome != "accepted" ||
		!strings.HasPrefix(a.Answer, "MPA ID Rep Frame C S rev 2") || len(m.Questions) != len(r.Questions) {
		t.Errorf("%+v", m)
	}
	if d := m.Depths[4]; len(m.Depths) != 5 || *d.Asked != 0x3fff || *d.IRD != 0x3fff || *d.ORD != 0x3fff ||
		*m.Depths[0].Asked != 0 {
		t.Errorf("depths: %s", b)
	}
	var junit strings.Builder
	if err := r.Report().WriteJUnit(&junit); err != nil || m.Network != "usertcp" ||
		!strings.Contains(junit.String(), " over usertcp\"") {
		t.Errorf("network %s: %v: %s", m.Network, err, &junit)
	}
}

// TestDocumentedJSON holds docs/probe-json.md to what is printed.
func TestDocumentedJSON(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../../docs/probe-json.md", probe.Report{}, probe.SCTPReport{})
}
