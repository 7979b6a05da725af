package decode_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// must returns a value that comes without an error.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		testrig.Must(t, err)
		return v
	}
}

// recorded has two ends of this module talk over TCP, and returns the capture of what the
// Initiator sends and receives.
func recorded(t testing.TB, offer mpa.Offer, listen iwarp.ListenConfig, accept iwarp.AcceptConfig, streaming bool,
	talk func(ini, res *iwarp.QP)) []byte {
	t.Helper()
	var file bytes.Buffer
	w := must[*capture.Writer](t)(capture.NewWriter(&file, capture.WriterConfig{MSS: capture.MaxMSS}))
	d := iwarp.Dialer{MPA: offer, NoFallback: true,
		Wrap: func(c net.Conn) (net.Conn, error) { return capture.Tap(c, w, capture.Forward) }}
	ln := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	responded := make(chan *iwarp.QP, 1)
	go func() {
		defer close(responded)
		if qp, err := respond(t, ln, listen, accept, streaming); err == nil {
			responded <- qp
		}
	}()
	ini, err := initiate(t, &d, ln.Addr().String(), streaming)
	res := <-responded
	if err == nil && res != nil {
		talk(ini, res)
		closed := make(chan error, 1)
		go func() { closed <- res.Close() }()
		_ = ini.Close()
		<-closed
	}
	testrig.Must(t, w.Flush())
	return file.Bytes()
}

const hello, answer = "do you speak iWARP?\n", "yes\n"

func initiate(t testing.TB, d *iwarp.Dialer, addr string, streaming bool) (*iwarp.QP, error) {
	if !streaming {
		return d.Dial(testrig.Within(t), "tcp", addr)
	}
	c := must[net.Conn](t)(net.Dial("tcp", addr))
	c = must[net.Conn](t)(d.Wrap(c))
	if _, err := io.WriteString(c, hello); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, make([]byte, len(answer))); err != nil {
		return nil, err
	}
	return d.Initiate(testrig.Within(t), c, nil)
}

func respond(t testing.TB, ln net.Listener, listen iwarp.ListenConfig, accept iwarp.AcceptConfig,
	streaming bool) (*iwarp.QP, error) {
	c, err := ln.Accept()
	if err != nil {
		return nil, err
	}
	var last []byte
	if streaming {
		if _, err := io.ReadFull(c, make([]byte, len(hello))); err != nil {
			return nil, err
		}
		last = []byte(answer)
	}
	req, err := listen.Respond(testrig.Within(t), c, last)
	if err != nil {
		return nil, err
	}
	if string(req.PrivateData()) == "no" {
		_ = req.Reject([]byte("not you"))
		return nil, io.EOF
	}
	return req.Accept(testrig.Within(t), accept)
}

// talk has a Send, a Write and a Read go from the Initiator.
func talk(t testing.TB, ini, res *iwarp.QP) {
	const n = 5000
	ctx := testrig.Within(t)
	src := must[*iwarp.MR](t)(ini.PD().Register(make([]byte, n), iwarp.LocalWrite))
	dst := must[*iwarp.MR](t)(res.PD().Register(make([]byte, n), iwarp.LocalWrite|iwarp.RemoteWrite|iwarp.RemoteRead))
	testrig.Must(t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{dst.Slice(0, n)}}))
	testrig.Must(t, ini.Send(ctx, src.Slice(0, n)))
	must[int](t)(ini.Write(ctx, src.Slice(0, n), dst.Remote(0)))
	must[int](t)(ini.Read(ctx, src.Slice(0, n), dst.Remote(0)))
}

// meetings are pairs of ends, with the dialect and the version that they come to.
var meetings = []struct {
	name    string
	offer   mpa.Offer
	listen  iwarp.ListenConfig
	dialect mpa.Dialect
	version uint8
}{
	{"enhanced", mpa.Offer{IRD: 4, ORD: 4}, iwarp.ListenConfig{}, mpa.DialectRFC6581, 1},
	{"client-server", mpa.Offer{IRD: 4, ORD: 4, ClientServer: true}, iwarp.ListenConfig{}, mpa.DialectRFC6581, 1},
	{"RTR by Read", mpa.Offer{IRD: 4, ORD: 4, RTR: mpa.RTRRead}, iwarp.ListenConfig{}, mpa.DialectRFC6581, 1},
	{"RTR by Send", mpa.Offer{IRD: 4, ORD: 4, RTR: mpa.RTRSend}, iwarp.ListenConfig{}, mpa.DialectRFC6581, 1},
	{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, iwarp.ListenConfig{}, mpa.DialectRFC5044, 1},
	{"Rtr frame", mpa.Offer{Dialect: mpa.DialectRtr}, iwarp.ListenConfig{Dialects: mpa.Dialects()}, mpa.DialectRtr, 1},
	{"Rtr frame, not known there", mpa.Offer{Dialect: mpa.DialectRtr}, iwarp.ListenConfig{}, mpa.DialectRFC5044, 1},
	{"revision 0", mpa.Offer{Dialect: mpa.DialectRevision0}, iwarp.ListenConfig{}, mpa.DialectRevision0, 0},
	{"Start Key", mpa.Offer{Dialect: mpa.DialectStartKey}, iwarp.ListenConfig{}, mpa.DialectStartKey, 0},
	{"Start Key with messages", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true, PrivateData: []byte("hi")},
		iwarp.ListenConfig{Messages: true}, mpa.DialectStartKey, 0},
}

// TestEndpoints records connections of this module in every dialect, with markers and
// without, straight away and after streaming data, and finds nothing wrong with them.
func TestEndpoints(t *testing.T) {
	for _, c := range meetings {
		for _, markers := range []bool{false, true} {
			for _, streaming := range []bool{false, true} {
				c.offer.Markers = markers
				accept := iwarp.AcceptConfig{MPA: mpa.Answer{IRD: 4, ORD: 4, Markers: markers}}
				file := recorded(t, c.offer, c.listen, accept, streaming,
					func(ini, res *iwarp.QP) { talk(t, ini, res) })
				r := run(t, file)
				name := fmt.Sprintf("%s, markers %t, streaming %t", c.name, markers, streaming)
				if len(r.conns) != 1 {
					t.Errorf("%s: %d connections", name, len(r.conns))
					continue
				}
				x := r.conns[0]
				withMarkers := markers || c.dialect == mpa.DialectRevision0
				if len(r.findings) > 0 || !x.Agreed || x.Dialect != c.dialect || x.Version != c.version ||
					x.Markers != [2]bool{withMarkers, withMarkers} || !x.CRC {
					t.Errorf("%s: %q, %q, %+v", name, r.texts, r.startups, x)
				}
				f := &x.Halves[fw]
				if f.Ops[3].Bytes != 5000 || x.Halves[bw].Ops[2].Bytes != 5000 || f.Reads.Count < 1 ||
					f.End.Reason != capture.EndFIN {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
	}
}

// TestEndpointsFail records connections of this module that do not come up, or end in a
// Terminate.
func TestEndpointsFail(t *testing.T) {
	for _, c := range []struct {
		name     string
		offer    mpa.Offer
		listen   iwarp.ListenConfig
		accept   iwarp.AcceptConfig
		findings []string
	}{
		{"rejected", mpa.Offer{PrivateData: []byte("no")}, iwarp.ListenConfig{}, iwarp.AcceptConfig{},
			[]string{"note rejected"}},
		{"rejected in revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044, PrivateData: []byte("no")},
			iwarp.ListenConfig{}, iwarp.AcceptConfig{}, []string{"note rejected"}},
		{"no common RTR", mpa.Offer{RTR: mpa.RTRWrite}, iwarp.ListenConfig{},
			iwarp.AcceptConfig{MPA: mpa.Answer{RTR: mpa.RTRRead}},
			[]string{"warning no-common-rtr", "warning terminate"}},
		{"revision 0 not served", mpa.Offer{Dialect: mpa.DialectRevision0},
			iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{Kind: mpa.KindNonPermissive})},
			iwarp.AcceptConfig{}, []string{"warning revisions-do-not-fit"}},
		{"revision 2 not served", mpa.Offer{}, iwarp.ListenConfig{Dialects: []mpa.Dialect{mpa.DialectRFC5044}},
			iwarp.AcceptConfig{}, []string{"warning closed-at-startup"}},
		{"Start Key not served", mpa.Offer{Dialect: mpa.DialectStartKey},
			iwarp.ListenConfig{Dialects: []mpa.Dialect{mpa.DialectRFC5044}}, iwarp.AcceptConfig{},
			[]string{"warning closed-at-startup"}},
	} {
		r := run(t, recorded(t, c.offer, c.listen, c.accept, false, func(*iwarp.QP, *iwarp.QP) {}))
		if !slices.Equal(r.findings, c.findings) {
			t.Errorf("%s: %q, want %q; %q", c.name, r.texts, c.findings, r.startups)
		}
	}
}

// TestEndpointTerminate has a Write go to memory that is not there.
func TestEndpointTerminate(t *testing.T) {
	file := recorded(t, mpa.Offer{}, iwarp.ListenConfig{}, iwarp.AcceptConfig{}, false, func(ini, res *iwarp.QP) {
		src := must[*iwarp.MR](t)(ini.PD().Register(make([]byte, 100), iwarp.LocalWrite))
		_, _ = ini.Write(testrig.Within(t), src.Slice(0, 100), iwarp.Remote{STag: 0xbad, TO: 5})
		<-res.Done()
		<-ini.Done()
	})
	r := run(t, file)
	if !slices.Equal(r.findings, []string{"warning terminate"}) {
		t.Errorf("%q", r.texts)
	}
}
