package startup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An opening is how the peer of a Responder starts in one dialect.
type opening struct {
	name   string
	cfg    iwarp.ListenConfig
	first  []byte            // its first frame
	answer func(p *rig.Peer) // reads ours
	owed   []byte            // its next frame, if there is one
	last   func(p *rig.Peer) // reads our answer to that
	ready  func(p *rig.Peer) // speaks as was agreed on
	begin  func(p *rig.Peer) []byte
	ulp    string
}

func openings() []opening {
	nothing := func(*rig.Peer) {}
	reads := func(p *rig.Peer) { p.WantFrame(mpa.KeyReply) }
	version0 := func(p *rig.Peer) { p.Version = 0 }
	none := func(*rig.Peer) []byte { return nil }
	rtr := rig.Request(1, 'p', 'd')
	rtr.S = true
	return []opening{
		{"revision 1", iwarp.ListenConfig{}, rig.Frame(rig.Request(1, 'p', 'd')), reads, nil,
			nothing, nothing, none, "pd"},
		{"revision 2", iwarp.ListenConfig{}, rig.Frame(rig.Request(2, 'p', 'd')), reads, nil, nothing, nothing,
			func(p *rig.Peer) []byte { return p.Write(1, 0, nil) }, "pd"},
		{
			"Rtr frame", iwarp.ListenConfig{Dialects: mpa.Dialects()}, rig.Frame(rtr), reads,
			rig.Frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1}), nothing, nothing, none, "pd",
		},
		{"revision 0", iwarp.ListenConfig{}, rig.Frame(revision0(mpa.KeyRequest, 'p', 'd')), reads, nil, nothing,
			(*rig.Peer).BecomeRDMAC, none, "pd"},
		{"Start Key", iwarp.ListenConfig{}, startKey(false), func(p *rig.Peer) { p.WantBytes(startKey(false)) }, nil,
			nothing, version0, none, ""},
		{
			"Start Key with messages", iwarp.ListenConfig{Messages: true}, []byte{0, 2, 'p', 'd'},
			func(p *rig.Peer) { p.WantBytes([]byte{0, 0}) },
			startKey(false), func(p *rig.Peer) { p.WantBytes(startKey(false)) }, version0, none, "pd",
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
	{"TCP", rig.TCPPair, func(t *testing.T, f func(*testing.T)) { f(t) }},
	{"pipe", rig.NewPipe, synctest.Test},
}

// TestReadAhead reads the streaming mode of every dialect through a bufio.Reader, which
// gets the first bytes of MPA with it: those up to the first FPDU, cut at every byte.
// Not one is lost or misread, and those that come later are read as from any socket.
//
// Proves Q14, Q13, K03, K06.
func TestReadAhead(t *testing.T) {
	for _, how := range pairs {
		for _, o := range openings() {
			for cut := range len(hello) + len(o.first) + 1 {
				how.run(t, func(t *testing.T) {
					a, b := how.make(t)
					p := rig.NewPeer(t, a)
					data := append([]byte(hello), o.first...)
					p.Meanwhile(func() { p.SendInTwo(data, cut) })
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

// carryOn responds, and has bytes go both ways.
func (o *opening) carryOn(t *testing.T, p *rig.Peer, c net.Conn, cut int) {
	t.Helper()
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	o.cfg.PD = res.PD
	const last = "yes, go on\n"
	said := make(chan struct{})
	go func() {
		defer close(said)
		p.WantBytes([]byte(last))
	}()
	req, err := o.cfg.Respond(rig.Within(t), c, []byte(last))
	if err != nil || string(req.PrivateData()) != o.ulp {
		t.Fatalf("%s, cut at %d: %v", o.name, cut, err)
	}
	<-said
	accepted := rig.DialInBackground(t, func() error {
		_, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: res.TwoReceives})
		return err
	})
	o.answer(p)
	if len(o.owed) > 0 {
		p.SendInTwo(o.owed, cut%len(o.owed))
		o.last(p)
	}
	if err := <-accepted; err != nil {
		t.Fatalf("%s, cut at %d: %v", o.name, cut, err)
	}
	o.ready(p)
	data := append(o.begin(p), p.Message(rdmap.OpSend, 1, []byte("first"))...)
	p.SendInTwo(data, cut%len(data))
	if wc := res.WantReceived(0, iwarp.StatusSuccess); wc.Length != 5 {
		t.Errorf("%s, cut at %d: %d bytes", o.name, cut, wc.Length)
	}
	answered := rig.DialInBackground(t, func() error {
		return res.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("back"), Unsignaled: true})
	})
	if s := p.Want(rdmap.OpSend); string(s.Payload) != "back" {
		t.Errorf("%s, cut at %d: got %q", o.name, cut, s.Payload)
	}
	rig.Should(t, <-answered)
	_ = res.Abort()
}

// TestReadAheadFPDUs has a bufio.Reader get the Request and the first FPDUs with the last of
// the streaming mode, and the others come after it.
//
// Proves Q13, Q14.
func TestReadAheadFPDUs(t *testing.T) {
	const sends = 40
	for size := 100; size < 5000; size = size*3 + 7 { // of the reader's buffer
		a, b := rig.TCPPair(t)
		p := rig.NewPeer(t, a)
		data := append([]byte(hello), rig.Frame(rig.Request(1))...)
		for i := range sends {
			data = append(data, p.Message(rdmap.OpSend, uint32(i+1), rig.Pattern(100, byte(i)))...)
		}
		p.Send(data[:len(data)/2])
		r := bufio.NewReaderSize(b, size)
		if s, err := r.ReadString('\n'); s != hello {
			t.Fatalf("streamed %q (%v)", s, err)
		}
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		req, err := (&iwarp.ListenConfig{PD: res.PD, TolerateEarly: true}).Respond(
			rig.Within(t), iwarp.Buffered(b, r), nil)
		rig.Must(t, err)
		mr := res.MR(100*sends, iwarp.LocalWrite)
		_, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: func(qp *iwarp.QP) error {
			res.QP = qp
			for i := range sends {
				res.MustPostRecv(uint64(i), mr.Slice(100*i, 100))
			}
			return nil
		}})
		rig.Must(t, err)
		p.Send(data[len(data)/2:])
		for i := range sends {
			res.WantReceived(uint64(i), iwarp.StatusSuccess)
			if string(mr.Bytes()[100*i:100*i+100]) != string(rig.Pattern(100, byte(i))) {
				t.Errorf("a buffer of %d: the bytes of Send %d differ", size, i)
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
						ini := rig.NewEnd(t, iwarp.RNICConfig{})
						res := rig.NewEnd(t, iwarp.RNICConfig{})
						listen := c.listen
						listen.PD = res.PD
						responded := rig.DialInBackground(t, func() (err error) {
							res.QP, err = respondAfterLines(t, b, byInitiator, listen)
							return err
						})
						var err error
						ini.QP, err = initiateAfterLines(t, a, byInitiator, iwarp.Dialer{PD: ini.PD, MPA: c.offer})
						rig.Must(t, err)
						rig.Must(t, <-responded)
						if d := res.Negotiated().Dialect; d != c.want {
							t.Errorf("came to %v, want %v", d, c.want)
						}
						rig.WorksBothWays(t, ini, res)
						rig.Finish(t, ini, res)
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
	return d.Initiate(rig.Within(t), iwarp.Buffered(c, r), last)
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
	req, err := cfg.Respond(rig.Within(t), iwarp.Buffered(c, r), last)
	if err != nil {
		return nil, err
	}
	return req.Accept(rig.Within(t), iwarp.AcceptConfig{})
}

// TestRejectAfterStream rejects in every dialect that leaves TCP open, after data in the
// streaming mode. Bytes of the stream follow the Request at once, and the Reply: none
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
					p := rig.NewPeer(t, a)
					p.Meanwhile(func() { p.Send(append(append([]byte(hello), o.first...), more...)) })
					r := bufio.NewReader(b)
					lines(t, r, hello)
					req, err := o.cfg.Respond(rig.Within(t), iwarp.Buffered(b, r), nil)
					rig.Must(t, err)
					p.Meanwhile(func() { p.WantFrame(mpa.KeyReply) })
					c, err := req.RejectKeep([]byte("no"), 0, 0)
					rig.Must(t, err)
					if !old {
						r = bufio.NewReader(c)
					}
					lines(t, r, more)
					p.Meanwhile(func() { p.Send([]byte(hello)) })
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
	p := rig.NewPeer(t, a)
	f := mpa.StartupFrame(o.first)
	d := iwarp.Dialer{MPA: mpa.Offer{Dialect: rig.DialectOf(t, f.Rev())}}
	if f.Rev() == 0 {
		d.MPA.Dialect = mpa.DialectRevision0
	}
	r := bufio.NewReader(b)
	p.Meanwhile(func() { p.Send([]byte(hello)) })
	lines(t, r, hello)
	outcome := rig.DialInBackground(t, func() error {
		_, err := d.Initiate(rig.Within(t), iwarp.Buffered(b, r), []byte(now))
		return err
	})
	p.WantBytes([]byte(now))
	rep := p.WantFrame(mpa.KeyRequest).Fields()
	rep.Key, rep.R = mpa.KeyReply, true
	p.Meanwhile(func() { p.Send(append(rig.Frame(rep), more...)) })
	var rejected *iwarp.RejectError
	if err := <-outcome; !errors.As(err, &rejected) {
		t.Fatalf("%s: %v", o.name, err)
	}
	lines(t, bufio.NewReader(rejected.Conn), more)
	p.Meanwhile(func() { p.WantBytes([]byte(yes)) })
	if _, err := io.WriteString(rejected.Conn, yes); err != nil {
		t.Error(err)
	}
}

// TestInitiateFails closes the connection when MPA cannot even be started on it.
//
// Proves K06: with Start Keys the Initiator sends no last message.
func TestInitiateFails(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{QPs: 1, IRD: 4}})
	qp := rig.NewQP(t, rig.NewPD(t, rnic), iwarp.QPConfig{})
	rig.Must(t, qp.Modify(iwarp.StateError))
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
		{"the wrong state", func(c net.Conn) error { return new(iwarp.Dialer).InitiateQP(t.Context(), qp, c, nil) },
			iwarp.ErrBadState},
	} {
		a, b := rig.TCPPair(t)
		if err := c.do(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if sent := rig.NewPeer(t, a).WantFIN(); len(sent) > 0 {
			t.Errorf("%s: sent %q", c.name, sent)
		}
		wantGone(t, b)
	}
}
