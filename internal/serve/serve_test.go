package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/sparse"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A rig is a Server with one service, "stay", whose connections go on until the peer closes or the server makes them
// end.
type rig struct {
	t      *testing.T
	server *Server
	ln     *testrig.Listener
	log    *bytes.Buffer
	stop   context.CancelFunc
	ended  chan error
}

func run(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, ln: testrig.NewListener("server"), log: new(bytes.Buffer), ended: make(chan error, 1)}
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	cfg.Log = slog.New(slog.NewTextHandler(r.log, nil))
	knows := func(begin string) func(req *iwarp.Request) bool {
		return func(req *iwarp.Request) bool { return strings.HasPrefix(string(req.PrivateData()), begin) }
	}
	cfg.Services = []Service{{Name: "away", Knows: knows("away"), Off: "it is away"}, {
		Name: "busy", Wants: `"busy"`, Knows: knows("busy"),
		Serve: func(_ context.Context, req *iwarp.Request) error {
			return new(admission.Rejecter).RejectBecause(req, []byte("one at a time"), errors.New("another is served"))
		},
	}, {
		Name: "stay", Wants: `"stay"`,
		Knows: knows("stay"),
		Serve: func(ctx context.Context, req *iwarp.Request) error {
			qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
			if err != nil {
				return err
			}
			select {
			case <-qp.Done():
				return qp.Close()
			case <-ctx.Done():
				if errors.Is(context.Cause(ctx), admission.ErrSilent) {
					return qp.Abort()
				}
				return errors.Join(context.Cause(ctx), qp.Close())
			}
		},
	}, {
		Name: "last word", Wants: `"last word"`, Knows: knows("last word"), Serve: serveLastWord,
	}}
	ctx, stop := context.WithCancel(context.Background())
	r.server, r.stop = New(cfg), stop
	ln := (&iwarp.ListenConfig{RNIC: rnic}).NewListener(r.ln)
	go func() { r.ended <- r.server.Run(ctx, ln) }()
	t.Cleanup(stop)
	return r
}

// serveLastWord serves a connection until the server makes it end, of which it tells the peer a moment later.
func serveLastWord(ctx context.Context, req *iwarp.Request) error {
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
	if err != nil {
		return err
	}
	<-ctx.Done()
	time.Sleep(lastWords / 2)
	return errors.Join(qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("that was all")}), qp.Close())
}

// dial connects with private data.
func (r *rig) dial(data string) (*iwarp.QP, error) { return r.dialFrom("client", data) }

// dialFrom is dial from an address.
func (r *rig) dialFrom(address, data string) (*iwarp.QP, error) {
	ours, theirs := testrig.Pipe(address, "server")
	testrig.Must(r.t, r.ln.Offer(r.t.Context(), theirs))
	qp, err := (&iwarp.Dialer{
		MPA: mpa.Offer{PrivateData: []byte(data)}, QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 1}},
	}).Initiate(r.t.Context(), ours, nil)
	if refused := (*iwarp.RejectError)(nil); errors.As(err, &refused) && refused.Conn != nil {
		_ = refused.Conn.Close()
	}
	return qp, err
}

// visits connects, which succeeds.
func (r *rig) visits() *iwarp.QP {
	r.t.Helper()
	qp, err := r.dial("stay")
	testrig.Must(r.t, err)
	synctest.Wait()
	return qp
}

// visitsFrom connects from an address, which succeeds.
func (r *rig) visitsFrom(address string) *iwarp.QP {
	r.t.Helper()
	qp, err := r.dialFrom(address, "stay")
	testrig.Must(r.t, err)
	synctest.Wait()
	return qp
}

// refusedFor connects, which is rejected for a reason.
func (r *rig) refusedFor(data, reason string) {
	r.t.Helper()
	_, err := r.dial(data)
	var refused *iwarp.RejectError
	if !errors.As(err, &refused) || !strings.Contains(string(refused.PrivateData), reason) {
		r.t.Errorf("%q: %v", data, err)
	}
}

func (r *rig) logged(text string) {
	r.t.Helper()
	synctest.Wait()
	if !strings.Contains(r.log.String(), text) {
		r.t.Errorf("the log has no %q:\n%s", text, r.log)
	}
}

// TestUnknown: who wants what is not served is told what is, and logged.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{})
		r.refusedFor("go\x1b", `of no service here: busy ("busy"), stay ("stay")`)
		r.refusedFor("", `of no service here`)
		r.refusedFor("away", "iwarp serve: it is away")
		r.logged(`msg=rejected remote=client private_data=0x676f1b`)
		if got := r.server.Stats(); got.Unknown != 2 || got.Off != 1 || len(got.Services) != 3 || got.State != Serving {
			t.Errorf("%+v", got)
		}
		r.stop()
		testrig.Must(t, <-r.ended)
	})
}

// TestDeclined: who is rejected by a service counts as rejected, and its connection neither as ended nor as failed.
func TestDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{})
		r.refusedFor("busy", "one at a time")
		r.logged(`msg=rejected service=busy remote=client`)
		r.logged(`reason="another is served"`)
		if got := r.server.Stats(); got.Declined != 1 || got.Services["busy"] != (ServiceStats{}) {
			t.Errorf("%+v", got)
		}
		r.stop()
		testrig.Must(t, <-r.ended)
	})
}

// TestManyRefused has strangers come one after the other: the log has one record a second, and counts them all.
func TestManyRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{})
		const strangers = 300
		for range strangers {
			r.refusedFor("strange", "these private data are of no service here")
			time.Sleep(10 * time.Millisecond)
		}
		r.stop()
		testrig.Must(t, <-r.ended)
		log := r.log.String()
		records, sum := strings.Count(log, "msg=rejected"), strings.Count(log, "msg=rejected")
		for _, found := range regexp.MustCompile(sparse.LeftOut+`=(\d+)`).FindAllStringSubmatch(log, -1) {
			n, err := strconv.Atoi(found[1])
			testrig.Must(t, err)
			sum += n
		}
		if records > 6 || sum != strangers || r.server.Stats().Unknown != strangers {
			t.Errorf("%d records of %d requests:\n%s", records, sum, log)
		}
	})
}

// TestUntold: the log tells of a peer that could not be told why it was rejected.
func TestUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{MaxConnections: 1})
		one := r.visits()
		r.server.cfg.Services[0].Off = strings.Repeat("away ", 120)
		_, err := r.dial("away")
		if refused := (*iwarp.RejectError)(nil); !errors.As(err, &refused) || len(refused.PrivateData) != 0 {
			t.Error(err)
		}
		r.logged(`msg=rejected remote=client`)
		r.logged(`not_told="iwarp: reject`)
		testrig.Must(t, one.Close())
		synctest.Wait()
		r.stop()
		testrig.Must(t, <-r.ended)
	})
}

// TestFull: there is a bound on connections, and one that ends makes room.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{MaxConnections: 2})
		one, two := r.visits(), r.visits()
		r.refusedFor("stay", "2 connections already")
		testrig.Must(t, one.Close())
		synctest.Wait()
		three := r.visits()
		if got := r.server.Stats(); got.Full != 1 || got.Connections() != 2 ||
			got.Services["stay"] != (ServiceStats{Connections: 2, Ended: 1}) {
			t.Errorf("%+v", got)
		}
		testrig.Must(t, errors.Join(two.Close(), three.Close()))
		synctest.Wait() // the server has seen it, too: its grace is none
		r.stop()
		testrig.Must(t, <-r.ended)
	})
}

// TestDrain: the end takes nobody new in, and waits for those who are there.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{Grace: time.Minute})
		qp := r.visits()
		r.stop()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if got := r.server.Stats(); got.State != Draining || got.Connections() != 1 {
			t.Errorf("%+v", got)
		}
		_, theirs := testrig.Pipe("client", "server")
		if err := r.ln.Offer(t.Context(), theirs); err == nil {
			t.Error("somebody new was taken in")
		}
		testrig.Must(t, qp.Close())
		testrig.Must(t, <-r.ended)
		r.logged("msg=ended cut=0")
	})
}

// TestCut: those who are there after the grace are ended, in order, and the server says how many they were.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{Grace: time.Minute})
		one, two := r.visits(), r.visits()
		r.stop()
		var cut *CutError
		if err := <-r.ended; !errors.As(err, &cut) || cut.Connections != 2 {
			t.Errorf("%v", err)
		}
		for _, qp := range []*iwarp.QP{one, two} {
			<-qp.Done()
			testrig.Must(t, qp.Close())
		}
		if got := r.server.Stats().Services["stay"]; got.Failed != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// TestLastWord: a service whose connection is cut may tell the peer so.
func TestLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{Grace: time.Minute})
		qp, err := r.dial("last word")
		testrig.Must(t, err)
		synctest.Wait()
		r.stop()
		word, err := qp.PD().Register(make([]byte, 20), iwarp.LocalWrite)
		testrig.Must(t, err)
		wc, err := qp.Recv(t.Context(), word.Slice(0, 20))
		if testrig.Must(t, err); string(word.Bytes()[:wc.Length]) != "that was all" {
			t.Errorf("%q", word.Bytes()[:wc.Length])
		}
		if err := <-r.ended; !errors.As(err, new(*CutError)) {
			t.Errorf("%v", err)
		}
		testrig.Must(t, qp.Close())
	})
}

// TestListenerFails: a Listener that ends by itself is an error, and those who are there may still go on.
func TestListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{Grace: time.Minute})
		qp := r.visits()
		testrig.Must(t, r.ln.Close())
		synctest.Wait()
		testrig.Must(t, qp.Close())
		if err := <-r.ended; err == nil || errors.As(err, new(*CutError)) {
			t.Errorf("%v", err)
		}
	})
}
