package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
	"github.com/goiwarp/iwarp/mpa"
)

// raw is bytes in place of a message.
type raw []byte

func (raw) Type() message.Type       { return 0 }
func (r raw) Append(b []byte) []byte { return append(b, r...) }

// playClient connects a client that is played by hand.
func (r *rig) playClient(ctx context.Context) *link {
	r.t.Helper()
	l := newLink(0)
	_, err := r.dial(ctx, &iwarp.Dialer{QP: l.config(), NoReads: true,
		MPA: mpa.Offer{PrivateData: greeting()}, Prepare: l.prepare})
	testrig.Must(r.t, err)
	return l
}

// plays says all of a script, waiting for nothing, and then for the end of the connection, or for so many answers.
// Nothing that it is told matters.
func plays(ctx context.Context, l *link, script ...message.Message) {
	for _, m := range script {
		if _, err := l.qp.PostSends([]iwarp.SendWR{{ID: noBlock, Inline: m.Append(nil)}}); err != nil {
			break
		}
	}
	_ = l.qp.CloseWrite()
	for l.step(ctx) == nil {
	}
	_ = l.close(errors.New("played"))
}

// The messages of scripts.
var (
	beginPut = message.Begin{Put: true, Recursive: true}
	beginGet = message.Begin{Path: "mine"}
	fileX    = message.Offer{Kind: message.File, Path: "x", Size: 10}
	firstX   = message.Wrote{State: message.Written, Length: 10}
)

// TestHostileClients have the server end their connections, and nothing is made, read or kept from others.
func TestHostileClients(t *testing.T) {
	many := make([]message.Message, 3*recvDepth)
	for i := range many {
		many[i] = message.Offer{Kind: message.Missed, Path: "x"}
	}
	for name, c := range map[string]struct {
		script []message.Message
		left   string // besides mine
	}{
		"nothing":                    {},
		"an offer first":             {script: []message.Message{fileX}},
		"no message":                 {script: []message.Message{raw("what")}},
		"an empty message":           {script: []message.Message{raw{}}},
		"begins twice":               {script: []message.Message{beginPut, beginPut}},
		"writes what is not granted": {script: []message.Message{beginPut, firstX}},
		"writes at another place": {script: []message.Message{beginPut, fileX,
			message.Wrote{State: message.Written, Offset: 5, Length: 10}}},
		"writes less": {script: []message.Message{beginPut, fileX,
			message.Wrote{State: message.Written, Length: 9}}},
		"claims to have written": {script: []message.Message{beginPut, fileX, firstX, message.Done{}}},
		"claims that it is there": {script: []message.Message{beginPut, fileX,
			message.Wrote{State: message.Same, Length: 10}, message.Done{}}},
		"claims that it differs": {script: []message.Message{beginPut, fileX,
			message.Wrote{State: message.Differs, Length: 10}}},
		"is done at once": {script: []message.Message{beginPut, fileX, message.Done{}}},
		"another digest": {script: []message.Message{beginPut,
			message.Offer{Kind: message.File, Path: "x"}, message.Done{}}},
		"leaves what it has not made": {script: []message.Message{beginPut,
			message.Offer{Kind: message.Leave, Path: "x"}}},
		"a link": {script: []message.Message{beginPut,
			message.Offer{Kind: message.Directory, Path: "d"},
			message.Offer{Kind: message.Link, Path: "d/l", Detail: "f"}}, left: "d d/.iwarp-part"},
		"climbs": {script: []message.Message{beginPut,
			message.Offer{Kind: message.File, Path: "../x"}}},
		"begins above":               {script: []message.Message{message.Begin{Put: true, Path: "../x"}}},
		"gets what is above":         {script: []message.Message{message.Begin{Path: "../x"}}},
		"floods":                     {script: append([]message.Message{beginPut}, many...)},
		"a message that is too long": {script: []message.Message{raw(make([]byte, message.MaxLen))}},
		"a directory's file alone": {script: []message.Message{message.Begin{Put: true},
			message.Offer{Kind: message.File, Path: "d/x"}}},
		"a directory alone": {script: []message.Message{message.Begin{Put: true},
			message.Offer{Kind: message.Directory, Path: "d"}}},
		"says more after the end": {script: []message.Message{beginPut, message.End{}, message.Done{}}},
		"gets and offers":         {script: []message.Message{beginGet, fileX}},
		"gets behind the end": {script: []message.Message{beginGet, message.Answer{},
			message.Grant{Place: true, Offset: 1 << 40, Length: 1}}},
		"gets before the first": {script: []message.Message{beginGet, message.Answer{},
			message.Grant{Place: true, Offset: 1, Length: 1}}},
		"gets more than there is": {script: []message.Message{beginGet, message.Answer{},
			message.Grant{Place: true, Length: message.MaxBlock}}},
		"gets into no memory": {script: []message.Message{beginGet, message.Answer{},
			message.Grant{Place: true, Length: 1, STag: 0x1234}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, ctx := newRig(t), testrig.Within(t)
			made(t, []byte("mine"), r.there, "mine")
			plays(ctx, r.playClient(ctx), c.script...)
			if err := r.served(); err == nil {
				t.Error("the server takes it for a transfer")
			}
			lists(t, r.there, append(strings.Fields(c.left), "mine")...)
			testrig.Must(t, r.get("mine"))
		})
	}
}

// playServer has a client get f of a server that is played by hand.
func playServer(t *testing.T, c *Client, to string, script ...message.Message) error {
	t.Helper()
	ctx := testrig.Within(t)
	ended := make(chan struct{})
	c.Dial = func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
		ours, theirs := testrig.Pipe("client", "server")
		go func() {
			defer close(ended)
			req, err := new(iwarp.ListenConfig).Respond(ctx, theirs, nil)
			if err != nil {
				return
			}
			l := newLink(0)
			if _, err := req.Accept(ctx, iwarp.AcceptConfig{QP: l.config(), NoReads: true,
				MPA: mpa.Answer{PrivateData: greeting()}, Prepare: l.prepare}); err == nil {
				_, _ = l.receive(ctx)
				plays(ctx, l, script...)
			}
		}()
		return d.Initiate(ctx, ours, nil)
	}
	_, err := c.Get(ctx, []string{"f"}, to)
	<-ended
	return err
}

// TestHostileServers send what was not asked for: it is not made, and the client does not succeed.
func TestHostileServers(t *testing.T) {
	ok := message.Answer{}
	dir := func(p string) message.Message { return message.Offer{Kind: message.Directory, Path: p} }
	for name, c := range map[string]struct {
		script []message.Message
		alone  bool // without -r
		left   string
	}{
		"nothing":   {},
		"no answer": {script: []message.Message{message.End{}}},
		"another file": {script: []message.Message{ok,
			message.Offer{Kind: message.File, Path: ".profile"}, message.End{}}},
		"another directory":    {script: []message.Message{ok, dir("g"), message.End{}}},
		"a directory, unasked": {script: []message.Message{ok, dir("f"), message.End{}}, alone: true},
		"deep, unasked": {script: []message.Message{ok, message.Offer{Kind: message.File, Path: "f/g"},
			message.End{}}, alone: true},
		"climbs": {script: []message.Message{ok, message.Offer{Kind: message.File, Path: "f/../../g"}}},
		"a link by itself": {script: []message.Message{ok,
			message.Offer{Kind: message.Link, Path: "f", Detail: "g"}, message.End{}}},
		"a link out": {script: []message.Message{ok, dir("f"),
			message.Offer{Kind: message.Link, Path: "f/l", Detail: "../../g"}, message.End{}}, left: "f f/.iwarp-part"},
		"a link through a link": {script: []message.Message{
			ok, dir("f"), dir("f/d"), message.Offer{Kind: message.Leave, Path: "f/d", Mode: 0o700},
			message.Offer{Kind: message.Link, Path: "f/l", Detail: "d"},
			message.Offer{Kind: message.Link, Path: "f/l/m", Detail: "../x"}, message.End{},
		}, left: "f f/.iwarp-part f/d f/l"},
		"a link up from a link": {script: []message.Message{
			ok, dir("f"), message.Offer{Kind: message.Link, Path: "f/top", Detail: "."},
			message.Offer{Kind: message.Link, Path: "f/l", Detail: "top/../g"},
			message.Offer{Kind: message.Link, Path: "f/m", Detail: "later/../g"},
			message.Offer{Kind: message.Link, Path: "f/later", Detail: "."}, message.End{},
		}, left: "f f/.iwarp-part f/later f/top"},
		"a link up from a directory in a link": {script: []message.Message{
			ok, dir("f"), dir("f/d"), message.Offer{Kind: message.Leave, Path: "f/d", Mode: 0o700},
			message.Offer{Kind: message.Link, Path: "f/top", Detail: "."},
			message.Offer{Kind: message.Link, Path: "f/l", Detail: "top/d/../../g"},
			message.Offer{Kind: message.Link, Path: "f/m", Detail: "top/d/../g"}, message.End{},
		}, left: "f f/.iwarp-part f/d f/top"},
		"a file through a link": {script: []message.Message{
			ok, dir("f"), dir("f/d"), message.Offer{Kind: message.Link, Path: "f/d/up", Detail: ".."},
			message.Offer{Kind: message.File, Path: "f/d/up/g"}, message.End{},
		}, left: "f f/.iwarp-part f/d f/d/.iwarp-part f/d/up"},
		"a directory that is a link": {script: []message.Message{
			ok, dir("f"), message.Offer{Kind: message.Link, Path: "f/l", Detail: "d"}, dir("f/l"), message.End{},
		}, left: "f f/.iwarp-part f/l"},
		"wrote unasked": {script: []message.Message{ok, message.Wrote{State: message.Written, Length: 1}}},
		"wrote another": {script: []message.Message{ok, message.Offer{Kind: message.File, Path: "f", Size: 10},
			message.Wrote{State: message.Written, Offset: 1, Length: 9}}},
		"too large a file": {script: []message.Message{ok,
			message.Offer{Kind: message.File, Path: "f", Size: message.MaxSize}}},
		"says nothing good": {script: []message.Message{
			ok, message.Offer{Kind: message.Missed, Path: "\x1b[2J", Detail: "\x1b[2J"}, message.End{},
		}},
		"turns down": {script: []message.Message{message.Answer{Code: message.Failed, Text: "no\n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			here := filepath.Join(home, "here")
			testrig.Must(t, os.Mkdir(here, 0o700))
			err := playServer(t, &Client{Recursive: !c.alone}, here, c.script...)
			if err == nil || strings.ContainsAny(err.Error(), "\x1b") {
				t.Errorf("got %v", err)
			}
			lists(t, here, strings.Fields(c.left)...)
			lists(t, home, append(prefixed("here/", c.left), "here")...)
		})
	}
}

// TestUnaskedMakesNothing has a server send what was not asked for in place of what was, to where there is nothing yet:
// not even its directory is made.
func TestUnaskedMakesNothing(t *testing.T) {
	for _, c := range []struct {
		recursive bool
		offer     message.Offer
	}{{true, message.Offer{Kind: message.Link, Path: "f", Detail: "g"}},
		{false, message.Offer{Kind: message.Directory, Path: "f"}}} {
		here := t.TempDir()
		if err := playServer(t, &Client{Recursive: c.recursive}, filepath.Join(here, "new"), message.Answer{}, c.offer,
			message.End{}); err == nil {
			t.Errorf("%v succeeds", c.offer)
		}
		lists(t, here)
	}
}

func prefixed(prefix, names string) (all []string) {
	for _, n := range strings.Fields(names) {
		all = append(all, prefix+n)
	}
	return all
}

// TestStrangers have no business with each other, and say so.
func TestStrangers(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	_, err := r.dial(ctx, &iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte(message.Magic + "\x02")}})
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "this server has version 1 of iWcp" {
		t.Fatalf("got %v", err)
	}
	if got := connectError(err); !strings.HasSuffix(got.Error(), `says "this server has version 1 of iWcp"`) {
		t.Errorf("%v", got)
	}
	if err := verify(mpa.Negotiated{}); err == nil {
		t.Error("a server of something else will do")
	}
}

// TestSilence has a client that says nothing lose its connection, and one that waits for the server find out that it is
// silent.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *ServerConfig) { c.Silence = time.Minute })
		began := time.Now()
		l := r.playClient(t.Context())
		if err := r.served(); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < time.Minute || took > 90*time.Second {
			t.Errorf("after %v", took)
		}
		_ = l.close(errors.New("over"))
	})
}

// FuzzServer has a client say anything: the server ends its connection, and nothing is made but in its directory.
func FuzzServer(f *testing.F) {
	seed := func(script ...message.Message) {
		var b []byte
		for _, m := range script {
			data := m.Append(nil)
			b = append(append(b, byte(len(data)>>8), byte(len(data))), data...)
		}
		f.Add(b)
	}
	seed(beginPut, fileX, firstX, message.Done{}, message.End{})
	seed(beginGet, message.Answer{}, message.Grant{Place: true, Length: 4, STag: 1}, message.Answer{})
	seed(message.Begin{Put: true, Force: true, Resume: true, Path: "mine"},
		message.Offer{Kind: message.File, Path: "mine", Size: 4}, message.End{})
	seed(beginPut, message.Offer{Kind: message.Directory, Path: "d"},
		message.Offer{Kind: message.Link, Path: "d/l", Detail: "x"}, message.Offer{Kind: message.Leave, Path: "d"})
	f.Fuzz(func(t *testing.T, b []byte) {
		var script []message.Message
		for len(b) >= 2 && len(script) < recvDepth {
			n := min(int(b[0])<<8|int(b[1]), len(b)-2, message.MaxLen)
			script, b = append(script, raw(b[2:2+n])), b[2+n:]
		}
		r, ctx := newRig(t), testrig.Within(t)
		made(t, []byte("mine"), r.there, "mine")
		beside := made(t, []byte("beside"), filepath.Dir(r.there), "beside")
		plays(ctx, r.playClient(ctx), script...)
		r.serving.Wait()
		has(t, []byte("beside"), beside)
		if all, err := os.ReadDir(filepath.Dir(r.there)); err != nil || len(all) != 3 {
			t.Errorf("beside the directory of each end there are %v, %v", all, err)
		}
	})
}
