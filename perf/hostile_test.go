package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A stranger is an initiator whose control messages are the test's.
type stranger struct {
	t *testing.T
	d *dialing
}

// Responds runs a responder, whose visits may stand still for so long, for the length of
// the test, and returns its address and what it reports.
func Responds(t *testing.T, idle time.Duration, change ...func(*reception)) (addr string, visits <-chan Visit) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ln, err := Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	ended, done := make(chan Visit, 256), make(chan error, 1)
	r := newReception(ln.RNIC(), func(v Visit) { ended <- v }, idle)
	r.ln = ln
	for _, c := range change {
		c(r)
	}
	go func() { done <- r.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the responder ended with %v", err)
		}
		ln.Close()
	})
	return ln.Addr().String(), ended
}

// visits connects as an initiator does, which succeeds.
func visits(t *testing.T, addr string) *stranger {
	t.Helper()
	s, err := comes(t, addr)
	testrig.Must(t, err)
	return s
}

// comes connects as an initiator does.
func comes(t *testing.T, addr string) (*stranger, error) {
	t.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	t.Cleanup(func() { rnic.Close() })
	s, err := newSession(initiator, rnic)
	testrig.Must(t, err)
	over, err := open("")
	testrig.Must(t, err)
	d := &dialing{session: s, over: over, addr: addr, id: newSessionID()}
	return &stranger{t, d}, d.connectControl(t.Context(), Options{})
}

// says sends a control message and returns what the responder says is wrong.
func (s *stranger) says(message string) string {
	s.t.Helper()
	testrig.Must(s.t, s.d.ctl.send(s.t.Context(), json.RawMessage(message)))
	var a answer
	testrig.Must(s.t, s.d.ctl.receive(s.t.Context(), &a))
	return a.Error
}

// open has the responder get ready for a measurement of one connection.
func (s *stranger) open() {
	s.t.Helper()
	testrig.Must(s.t, s.tryOpen())
}

func (s *stranger) tryOpen() error {
	opts, err := Options{Sizes: []int{64}, Depth: 4, RXDepth: 6, NoBaseline: true}.Resolved()
	testrig.Must(s.t, err)
	return s.d.connect(s.t.Context(), opts)
}

// TestHostileSlices has the responder get slices that no initiator sends: each is
// refused by the name of its field, and the next measurement is as if nothing had been.
func TestHostileSlices(t *testing.T) {
	addr, _ := Responds(t, idleLimit)
	s := visits(t, addr)
	const good = `"transport":"iwarp","op":"Send","quantity":"bandwidth","size":64,"count":8,"slots":4,"depth":4`
	if got := s.says(`{"slice":{` + good + `}}`); !strings.Contains(got, "before the connections are up") {
		t.Errorf("a slice before anything was opened: %q", got)
	}
	s.open()
	for _, field := range []string{
		`"salt":9223372036854775807`, `"salt":-1`, `"salt":65521`,
		`"count":9223372036854775807`, `"count":0`, `"count":-9223372036854775808`, `"count":2147483648`,
		`"size":9223372036854775807`, `"size":0`, `"size":97`, `"size":385`,
		`"slots":9223372036854775807`, `"slots":0`, `"slots":7`,
		`"depth":9223372036854775807`, `"depth":0`, `"depth":5`, `"depth":5,"slots":6`,
		`"post_list":-1`, `"post_list":8193`, `"cq_mod":-1`, `"inline":true`, `"both":true,"quantity":"latency"`,
		`"both":true,"slots":1,"depth":1`,
		`"transport":"sctp"`, `"transport":""`, `"quantity":"mood"`,
	} {
		name, _, _ := strings.Cut(strings.Trim(field, `"`), `"`)
		got := s.says(`{"slice":{` + good + `,` + field + `}}`)
		// A size that does not fit into the slots is named by these.
		if !strings.Contains(got, "bad slice") || !strings.Contains(got, name) && !strings.Contains(got, "slots") {
			t.Errorf("%s: answered %q", field, got)
		}
	}
	if got := s.says(`{"slice":{"transport":"tcp"}}`); !strings.Contains(got, "no plain TCP") {
		t.Errorf("TCP without a baseline: %q", got)
	}
	if got := s.says(`{"open":{}}`); !strings.Contains(got, "already begun") {
		t.Errorf("opened twice: %q", got)
	}
	if got := s.says(`{}`); !strings.Contains(got, "empty request") {
		t.Errorf("an empty request: %q", got)
	}
	s.d.close(true)
	measures(t, addr)
}

// measures measures something small.
func measures(t *testing.T, addr string) {
	t.Helper()
	opts := Options{Sizes: []int{64}, Duration: time.Millisecond, NoBaseline: true}
	for {
		_, err := Connect(t.Context(), addr, opts, Observer{})
		var told *PeerError
		if errors.As(err, &told) && told.UnderWay {
			continue // the responder has not noticed yet that the last one has gone
		}
		if err != nil {
			t.Errorf("a measurement after that: %v", err)
		}
		return
	}
}

// TestRejectionOfAStranger has a responder that is none of ours reject with a text, or with
// encode that only look like an answer: these are no words of a responder's.
func TestRejectionOfAStranger(t *testing.T) {
	for _, text := range []string{"go away", "{", `{"tcp_port":1}`, ""} {
		dialed := &iwarp.RejectError{RejectError: &mpa.RejectError{PrivateData: []byte(text)}}
		if err := refusal(dialed); err != error(dialed) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestSilentInitiators leaves more control connections silent than the responder keeps: none
// is in the way of a measurement.
func TestSilentInitiators(t *testing.T) {
	addr, ended := Responds(t, idleLimit, func(r *reception) { r.waiting = admission.NewServerTable(maxWaiting, 0) })
	for range maxWaiting + 3 {
		visits(t, addr)
	}
	measures(t, addr)
	for range 3 {
		if v := <-ended; !errors.Is(v.Err, admission.ErrSilent) && v.Err != nil {
			t.Errorf("got %v", v.Err)
		}
	}
}

// TestManyInitiators has more come from one address in a moment than may wait for that: one more is told so. There is
// room again when one has gone, and when one measures, which then has no place to lose.
func TestManyInitiators(t *testing.T) {
	places := admission.NewServerTable(4, time.Hour)
	addr, ended := Responds(t, idleLimit, func(r *reception) { r.waiting = places })
	first, second := visits(t, addr), visits(t, addr)
	visits(t, addr)
	var told *PeerError
	if _, err := comes(t, addr); !errors.As(err, &told) ||
		!strings.Contains(told.Text, "3 connections from your address already") {
		t.Errorf("a fourth of an address: %v", err)
	}
	testrig.Must(t, second.d.ctl.qp.Close())
	<-ended
	visits(t, addr)
	first.open()
	if _, err := places.Enter(first.d.ctl.qp.LocalAddr(), nil); err != nil {
		t.Errorf("in the place of one that measures: %v", err)
	}
}

// TestIdleMeasurement gives up an initiator that has opened a measurement and then does
// nothing.
func TestIdleMeasurement(t *testing.T) {
	addr, ended := Responds(t, 50*time.Millisecond)
	_ = visits(t, addr).tryOpen() // for which a busy machine may need more than the 50 ms
	if v := <-ended; !errors.As(v.Err, new(*stillError)) {
		t.Errorf("got %v", v.Err)
	}
}

// TestOtherVersion: an initiator of another version hears why it is rejected, and is reported as one that was not
// served.
func TestOtherVersion(t *testing.T) {
	addr, ended := Responds(t, idleLimit)
	text := hello{control: true, session: 1}.encode()
	text[4]--
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: text}}
	_, err := d.Dial(t.Context(), "tcp", addr)
	if err = refusal(err); err == nil || !strings.Contains(err.Error(),
		fmt.Sprintf("version %d of the measurement protocol", helloVersion-1)) {
		t.Errorf("the initiator: %v", err)
	}
	if v := <-ended; !errors.As(v.Err, new(versionError)) || v.Remote == nil {
		t.Errorf("the responder reports %+v", v)
	}
}

// TestHostileHello asks for more Reads than any initiator.
func TestHostileHello(t *testing.T) {
	addr, _ := Responds(t, idleLimit)
	s := visits(t, addr)
	opts := Options{Sizes: []int{64}, NoBaseline: true, QPs: 1, Ops: AllOps()}
	if _, err := s.d.ctl.call(t.Context(), request{Open: &opts}); err != nil {
		t.Fatal(err)
	}
	h := hello{session: s.d.id, reads: math.MaxUint16}
	d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: h.encode(), IRD: 1, ORD: 1}}
	qp, err := d.Dial(t.Context(), "tcp", addr)
	testrig.Must(t, err)
	defer qp.Close()
	if n := qp.Negotiated(); n.IRD > maxReads || n.ORD > maxReads {
		t.Errorf("IRD %d, ORD %d", n.IRD, n.ORD)
	}
}

// FuzzControl has any bytes be a control message. What passes the checks on it can be
// computed with: nothing overflows, and no buffer is exceeded.
func FuzzControl(f *testing.F) {
	for _, seed := range []string{
		`{"open":{"sizes":[64,4096],"depth":9,"qps":2,"duration_ns":1000000}}`,
		`{"slice":{"transport":"iwarp","op":"Write","quantity":"latency","size":64,"count":2147483647,"slots":4,"depth":4,"salt":65520}}`,
		`{"slice":{"transport":"tcp","op":"Read","quantity":"bandwidth","size":256,"count":1,"slots":1,"depth":1,"salt":9223372036854775807}}`,
		`{"lanes":[{"tx":{"STag":1,"TO":2}}]}`, `{"check":true}`, `[]`,
		`{"open":{"qps":9223372036854775807,"depth":-1}}`,
	} {
		f.Add([]byte(seed))
	}
	opts, err := Options{Sizes: []int{64}, Depth: 4, RXDepth: 6}.Resolved()
	testrig.Must(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		var req request
		if json.Unmarshal(b, &req) != nil {
			return
		}
		if req.Open != nil {
			if o, err := req.Open.Resolved(); err == nil &&
				(o.memory() > MaxMemory || o.QPs > MaxQPs || o.maxSlots() > MaxDepth || o.reads() > maxReads) {
				t.Errorf("%+v is let through", o)
			}
		}
		if req.Slice != nil && req.Slice.validate(opts) == nil {
			computes(t, opts, *req.Slice)
		}
	})
}

// computes does all the arithmetic that a slice is used in.
func computes(t *testing.T, opts Options, j job) {
	bufs := newBuffers(int(opts.ring()))
	j = j.onLane(MaxQPs - 1)
	for _, s := range []side{initiator, responder} {
		bufs.fill(j, s)
		_ = bufs.check(j, s, 0) // nothing was received: it may find what it likes
	}
	r := newRing(bufs.tx, j.Size, j.Slots)
	for _, i := range []int{0, j.Count / 2, j.Count - 1} {
		r.stamped(&j, i)
		r.message(r.source(i))
	}
	if j.credits() < 1 || j.credits() > j.Count+1 || j.signalPeriod() < 1 || int64(j.Count)*int64(j.Size) < 1 {
		t.Errorf("%+v: %d credits, a completion after %d", j, j.credits(), j.signalPeriod())
	}
}
