package iwarp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An opening is how the peer of a Responder starts in one dialect.
type opening struct {
	name   string
	cfg    iwarp.ListenConfig
	first  []byte        // its first frame
	answer func(p *peer) // reads ours
	owed   []byte        // its next frame, if there is one
	last   func(p *peer) // reads our answer to that
	ready  func(p *peer) // speaks as was agreed on
	begin  func(p *peer) []byte
	ulp    string
}

func openings() []opening {
	nothing := func(*peer) {}
	reads := func(p *peer) { p.wantFrame(mpa.KeyReply) }
	version0 := func(p *peer) { p.version = 0 }
	none := func(*peer) []byte { return nil }
	rtr := request(1, 'p', 'd')
	rtr.S = true
	return []opening{
		{"revision 1", iwarp.ListenConfig{}, frame(request(1, 'p', 'd')), reads, nil, nothing, nothing, none, "pd"},
		{"revision 2", iwarp.ListenConfig{}, frame(request(2, 'p', 'd')), reads, nil, nothing, nothing, func(p *peer) []byte { return p.write(1, 0, nil) }, "pd"},
		{
			"Rtr frame", iwarp.ListenConfig{Dialects: mpa.Dialects()}, frame(rtr), reads,
			frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1}), nothing, nothing, none, "pd",
		},
		{"revision 0", iwarp.ListenConfig{}, frame(revision0(mpa.KeyRequest, 'p', 'd')), reads, nil, nothing, (*peer).becomeRDMAC, none, "pd"},
		{"Start Key", iwarp.ListenConfig{}, startKey(false), func(p *peer) { p.wantOctets(startKey(false)) }, nil, nothing, version0, none, ""},
		{
			"Start Key with messages", iwarp.ListenConfig{Messages: true}, []byte{0, 2, 'p', 'd'}, func(p *peer) { p.wantOctets([]byte{0, 0}) },
			startKey(false), func(p *peer) { p.wantOctets(startKey(false)) }, version0, none, "pd",
		},
	}
}

const hello = "hello, do you speak iWARP?\n"

// pairs are the ways to have two ends of a connection.
var pairs = []struct {
	name string
	make func(testing.TB) (a, b net.Conn)
	run  func(*testing.T, func(*testing.T))
}{
	{"TCP", tcpPair, func(t *testing.T, f func(*testing.T)) { f(t) }},
	{"pipe", newPipe, synctest.Test},
}

// TestReadAhead reads the streaming mode of every dialect through a bufio.Reader, which
// gets the first octets of MPA with it: those up to the first FPDU, cut at every octet.
// Not one is lost or misread, and those that come later are read as from any socket.
//
// Proves Q14, Q13, K03, K06.
func TestReadAhead(t *testing.T) {
	for _, how := range pairs {
		for _, o := range openings() {
			for cut := range len(hello) + len(o.first) + 1 {
				how.run(t, func(t *testing.T) {
					a, b := how.make(t)
					p := newPeer(t, a)
					octets := append([]byte(hello), o.first...)
					p.meanwhile(func() { p.sendInTwo(octets, cut) })
					r := bufio.NewReaderSize(b, 4096)
					if s, err := r.ReadString('\n'); s != hello {
						t.Fatalf("streamed %q (%v)", s, err)
					}
					o.carryOn(t, p, iwarp.Buffered(b, r), cut)
				})
			}
		}
	}
}

// carryOn responds, and has octets go both ways.
func (o *opening) carryOn(t *testing.T, p *peer, c net.Conn, cut int) {
	t.Helper()
	res := newEnd(t, iwarp.RNICConfig{})
	o.cfg.PD = res.pd
	const last = "yes, go on\n"
	said := make(chan struct{})
	go func() {
		defer close(said)
		p.wantOctets([]byte(last))
	}()
	req, err := iwarp.Respond(within(t), c, []byte(last), o.cfg)
	if err != nil || string(req.PrivateData()) != o.ulp {
		t.Fatalf("%s, cut at %d: %v", o.name, cut, err)
	}
	<-said
	accepted := dialInBackground(t, func() error {
		_, err := req.Accept(within(t), iwarp.AcceptConfig{Prepare: res.twoReceives})
		return err
	})
	o.answer(p)
	if len(o.owed) > 0 {
		p.sendInTwo(o.owed, cut%len(o.owed))
		o.last(p)
	}
	if err := <-accepted; err != nil {
		t.Fatalf("%s, cut at %d: %v", o.name, cut, err)
	}
	o.ready(p)
	octets := append(o.begin(p), p.message(rdmap.OpSend, 1, []byte("first"))...)
	p.sendInTwo(octets, cut%len(octets))
	if wc := res.wantReceived(0, iwarp.StatusSuccess); wc.Length != 5 {
		t.Errorf("%s, cut at %d: %d octets", o.name, cut, wc.Length)
	}
	answered := dialInBackground(t, func() error {
		return res.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("back"), Unsignaled: true})
	})
	if s := p.want(rdmap.OpSend); string(s.Payload) != "back" {
		t.Errorf("%s, cut at %d: got %q", o.name, cut, s.Payload)
	}
	should(t, <-answered)
	_ = res.Abort()
}

// TestReadAheadFPDUs has a bufio.Reader get the Request and the first FPDUs with the last of
// the streaming mode, and the others come after it.
//
// Proves Q13, Q14.
func TestReadAheadFPDUs(t *testing.T) {
	const sends = 40
	for size := 100; size < 5000; size = size*3 + 7 { // of the reader's buffer
		a, b := tcpPair(t)
		p := newPeer(t, a)
		octets := append([]byte(hello), frame(request(1))...)
		for i := range sends {
			octets = append(octets, p.message(rdmap.OpSend, uint32(i+1), pattern(100, byte(i)))...)
		}
		p.send(octets[:len(octets)/2])
		r := bufio.NewReaderSize(b, size)
		if s, err := r.ReadString('\n'); s != hello {
			t.Fatalf("streamed %q (%v)", s, err)
		}
		res := newEnd(t, iwarp.RNICConfig{})
		req, err := iwarp.Respond(within(t), iwarp.Buffered(b, r), nil, iwarp.ListenConfig{PD: res.pd, TolerateEarly: true})
		must(t, err)
		mr := res.mr(100*sends, iwarp.LocalWrite)
		_, err = req.Accept(within(t), iwarp.AcceptConfig{Prepare: func(qp *iwarp.QP) error {
			res.QP = qp
			for i := range sends {
				res.postRecv(uint64(i), mr.Slice(100*i, 100))
			}
			return nil
		}})
		must(t, err)
		p.send(octets[len(octets)/2:])
		for i := range sends {
			res.wantReceived(uint64(i), iwarp.StatusSuccess)
			if string(mr.Bytes()[100*i:100*i+100]) != string(pattern(100, byte(i))) {
				t.Errorf("a buffer of %d: the octets of Send %d differ", size, i)
			}
		}
		_ = res.Abort()
	}
}

// TestDelayedDialects has both sides exchange lines, through bufio.Readers, before they
// start MPA in each dialect, with a last message from either side that may send one.
//
// Proves Q14, K06, Q13.
func TestDelayedDialects(t *testing.T) {
	for _, how := range pairs {
		for _, c := range meetings {
			for _, byInitiator := range []bool{false, true} {
				if byInitiator && c.want == mpa.DialectStartKey {
					continue // it is not the last to send
				}
				t.Run(fmt.Sprintf("%s, %s, by the Initiator %t", how.name, c.name, byInitiator), func(t *testing.T) {
					t.Parallel()
					how.run(t, func(t *testing.T) {
						a, b := how.make(t)
						ini := newEnd(t, iwarp.RNICConfig{})
						res := newEnd(t, iwarp.RNICConfig{})
						listen := c.listen
						listen.PD = res.pd
						responded := dialInBackground(t, func() (err error) {
							res.QP, err = respondAfterLines(t, b, byInitiator, listen)
							return err
						})
						var err error
						ini.QP, err = initiateAfterLines(t, a, byInitiator, iwarp.Dialer{PD: ini.pd, MPA: c.offer})
						must(t, err)
						must(t, <-responded)
						if d := res.Negotiated().Dialect; d != c.want {
							t.Errorf("came to %v, want %v", d, c.want)
						}
						worksBothWays(t, ini, res)
						finish(t, ini, res)
					})
				})
			}
		}
	}
}

// lines reads lines from r and compares them.
func lines(t *testing.T, r *bufio.Reader, want ...string) {
	t.Helper()
	for _, w := range want {
		if s, err := r.ReadString('\n'); s != w {
			t.Fatalf("heard %q (%v), want %q", s, err, w)
		}
	}
}

const yes, now = "yes\n", "now\n"

// initiateAfterLines says hello, hears yes, and perhaps says now.
func initiateAfterLines(t *testing.T, c net.Conn, sayNow bool, d iwarp.Dialer) (*iwarp.QP, error) {
	t.Helper()
	if _, err := io.WriteString(c, hello); err != nil {
		t.Error(err)
	}
	r := bufio.NewReader(c)
	lines(t, r, yes)
	var last []byte
	if sayNow {
		last = []byte(now)
	}
	return d.Initiate(within(t), iwarp.Buffered(c, r), last)
}

// respondAfterLines is the other side. It hears now before it responds, or its yes is the
// last message.
func respondAfterLines(t *testing.T, c net.Conn, hearNow bool, cfg iwarp.ListenConfig) (*iwarp.QP, error) {
	r := bufio.NewReader(c)
	last := []byte(yes)
	if s, err := r.ReadString('\n'); s != hello {
		return nil, err
	}
	if hearNow {
		if _, err := c.Write(last); err != nil {
			return nil, err
		}
		if s, err := r.ReadString('\n'); s != now {
			return nil, fmt.Errorf("heard %q: %w", s, err)
		}
		last = nil
	}
	req, err := iwarp.Respond(within(t), iwarp.Buffered(c, r), last, cfg)
	if err != nil {
		return nil, err
	}
	return req.Accept(within(t), iwarp.AcceptConfig{})
}

// TestRejectAfterStream rejects in every dialect that leaves TCP open, after data in the
// streaming mode. Octets of the stream follow the Request at once, and the Reply: none
// of them is lost, on the connection handed back or through the old reader.
//
// Proves Q10, Q13, Q14.
func TestRejectAfterStream(t *testing.T) {
	const more = "and more of the stream\n"
	for _, how := range pairs {
		for _, o := range openings() {
			if o.name == "Start Key" || o.name == "Start Key with messages" {
				continue
			}
			for _, old := range []bool{false, true} {
				how.run(t, func(t *testing.T) {
					a, b := how.make(t)
					p := newPeer(t, a)
					p.meanwhile(func() { p.send(append(append([]byte(hello), o.first...), more...)) })
					r := bufio.NewReader(b)
					lines(t, r, hello)
					req, err := iwarp.Respond(within(t), iwarp.Buffered(b, r), nil, o.cfg)
					must(t, err)
					p.meanwhile(func() { p.wantFrame(mpa.KeyReply) })
					c, err := req.Reject([]byte("no"))
					must(t, err)
					if !old {
						r = bufio.NewReader(c)
					}
					lines(t, r, more)
					p.meanwhile(func() { p.send([]byte(hello)) })
					lines(t, r, hello)
				})
			}
			how.run(t, func(t *testing.T) { o.rejected(t, how.make, more) })
		}
	}
}

// rejected plays the Responder that rejects.
func (o *opening) rejected(t *testing.T, conns func(testing.TB) (a, b net.Conn), more string) {
	t.Helper()
	a, b := conns(t)
	p := newPeer(t, a)
	f := mpa.StartupFrame(o.first)
	d := iwarp.Dialer{MPA: mpa.Offer{Dialect: dialectOf(t, f.Rev())}}
	if f.Rev() == 0 {
		d.MPA.Dialect = mpa.DialectRevision0
	}
	r := bufio.NewReader(b)
	p.meanwhile(func() { p.send([]byte(hello)) })
	lines(t, r, hello)
	outcome := dialInBackground(t, func() error {
		_, err := d.Initiate(within(t), iwarp.Buffered(b, r), []byte(now))
		return err
	})
	p.wantOctets([]byte(now))
	rep := p.wantFrame(mpa.KeyRequest).Fields()
	rep.Key, rep.R = mpa.KeyReply, true
	p.meanwhile(func() { p.send(append(frame(rep), more...)) })
	var rejected *iwarp.RejectError
	if err := <-outcome; !errors.As(err, &rejected) {
		t.Fatalf("%s: %v", o.name, err)
	}
	lines(t, bufio.NewReader(rejected.Conn), more)
	p.meanwhile(func() { p.wantOctets([]byte(yes)) })
	if _, err := io.WriteString(rejected.Conn, yes); err != nil {
		t.Error(err)
	}
}

// TestInitiateFails closes the connection when MPA cannot even be started on it.
//
// Proves K06: with Start Keys the Initiator sends no last message.
func TestInitiateFails(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{QPs: 1, IRD: 4}})
	qp := create(t, newPD(t, rnic), iwarp.QPConfig{})
	must(t, qp.Modify(iwarp.StateError))
	last := []byte(now)
	for _, c := range []struct {
		name string
		do   func(net.Conn) error
		want error
	}{
		{"a last message before a Start Key", func(c net.Conn) error {
			_, err := (&iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey}}).Initiate(t.Context(), c, last)
			return err
		}, iwarp.ErrInvalid},
		{"no room for a QP", func(c net.Conn) error {
			_, err := (&iwarp.Dialer{PD: qp.PD()}).Initiate(t.Context(), c, last)
			return err
		}, iwarp.ErrLimit},
		{"a bad offer", func(c net.Conn) error {
			_, err := (&iwarp.Dialer{MPA: mpa.Offer{Dialect: 77}}).Initiate(t.Context(), c, nil)
			return err
		}, mpa.ErrOffer},
		{"the wrong state", func(c net.Conn) error { return new(iwarp.Dialer).InitiateQP(t.Context(), qp, c, nil) }, iwarp.ErrBadState},
	} {
		a, b := tcpPair(t)
		if err := c.do(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if sent := newPeer(t, a).wantFIN(); len(sent) > 0 {
			t.Errorf("%s: sent %q", c.name, sent)
		}
		wantGone(t, b)
	}
}
