package conform_test

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A wire stands between the suite and our endpoint and breaks a rule on the way: what
// the suite sees is a peer that breaks it.
type wire struct {
	suite, endpoint *testrig.Conn

	mu    sync.Mutex
	asked terms // of the suite's startup frame, as the endpoint knows it
	said  terms // of the endpoint's
}

// terms are what a startup frame says.
type terms struct{ m, c, rdmac bool }

// A way carries one direction from src to dst, up to its end.
type way func(w *wire, src *script.Link, dst *testrig.Conn)

// forever is no deadline.
var forever time.Time

// run carries both directions until both have ended.
func (w *wire) run(toPeer, fromPeer way) {
	var both sync.WaitGroup
	both.Go(func() { toPeer(w, script.NewLink(w.suite), w.endpoint) })
	both.Go(func() { fromPeer(w, script.NewLink(w.endpoint), w.suite) })
	both.Wait()
	w.hangUp()
}

func (w *wire) hangUp() {
	w.suite.Close()
	w.endpoint.Close()
}

// between returns the setup's function of two ways.
func between(toPeer, fromPeer way) func(suite, endpoint net.Conn) {
	return func(suite, endpoint net.Conn) {
		w := &wire{suite: suite.(*testrig.Conn), endpoint: endpoint.(*testrig.Conn)}
		w.run(toPeer, fromPeer)
	}
}

// pass carries bytes and the end of the connection as they are.
func pass(_ *wire, src *script.Link, dst *testrig.Conn) { _ = src.CarryTo(dst, nil) }

// carry carries bytes, and not the end of the connection, for which it waits.
func carry(src *script.Link, dst *testrig.Conn) {
	for src.End() == script.Open {
		_ = src.Receive(forever)
		_, _ = dst.Write(src.Take(len(src.Received())))
	}
}

// shut closes the connection on both sides, and carries nothing.
func shut(w *wire, _ *script.Link, _ *testrig.Conn) { w.hangUp() }

// frame edits a startup frame as it passes, and carries on with next, or as it is.
// The frame is kept as the endpoint knows it.
func frame(edit func(*mpa.StartupFields), next ...way) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		b, err := src.Frame(forever)
		if err != nil {
			pass(w, src, dst)
			return
		}
		after := b
		if edit != nil {
			f := b.Fields()
			edit(&f)
			after = mpa.AppendStartup(nil, &f)
		}
		if src.Conn() == w.endpoint {
			w.note(&w.said, b)
		} else {
			w.note(&w.asked, after)
		}
		_, _ = dst.Write(after)
		slices.Concat(next, []way{pass})[0](w, src, dst)
	}
}

func (w *wire) note(t *terms, f mpa.StartupFrame) {
	w.mu.Lock()
	*t = terms{f.M(), f.C(), f.Rev() == 0}
	w.mu.Unlock()
}

// enhanced edits a frame's enhanced data.
func enhanced(edit func(*mpa.Enhanced)) func(*mpa.StartupFields) {
	return func(f *mpa.StartupFields) {
		if e, err := mpa.ParseEnhanced(f.PrivateData); err == nil {
			edit(&e)
			f.PrivateData = append(mpa.AppendEnhanced(nil, &e), f.PrivateData[mpa.EnhancedLen:]...)
		}
	}
}

// closeIf closes the connection on a frame of which bad is true, and carries it on
// otherwise.
func closeIf(bad func(mpa.StartupFrame) bool) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		b, err := src.Frame(forever)
		if err == nil && bad(b) {
			shut(w, src, dst)
			return
		}
		_, _ = dst.Write(b)
		pass(w, src, dst)
	}
}

// key replaces the first bytes, which are a frame's key, by what edit makes of them.
func key(n int, edit func([]byte) []byte, next ...way) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		if b, err := src.Bytes(n, forever); err == nil {
			b = edit(b)
			_, _ = dst.Write(b[:min(n, len(b))])
		}
		slices.Concat(next, []way{pass})[0](w, src, dst)
	}
}

// anyKey takes every key for the right one if good says so.
func anyKey(right string, good func(key string) bool) way {
	return key(len(right), func(b []byte) []byte {
		if good(string(b)) {
			return []byte(right)
		}
		return b
	})
}

// say sends bytes before anything that comes from src.
func say(data []byte, next way) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		_, _ = dst.Write(data)
		next(w, src, dst)
	}
}

// swallow carries nothing, up to the end.
func swallow(_ *wire, src *script.Link, dst *testrig.Conn) {
	_ = src.Until(forever)
	_ = dst.CloseWrite()
}

// An edit changes the bytes of an FPDU that begins at an offset of the stream. It
// may return none, or several.
type edit func(offset uint64, data, ulpdu []byte) []byte

// fpdus edits what src sends in Full Operation. Both startup frames must have passed
// by frame.
func fpdus(e edit) way { return fpdusIn((*wire).terms, e) }

func fpdusIn(terms func(*wire, *script.Link) script.Terms, e edit) way {
	return func(w *wire, src *script.Link, dst *testrig.Conn) {
		if src.Need(1, forever) == nil { // by now both frames have passed
			src.Operate(terms(w, src))
			for f, err := src.NextFPDU(forever); err == nil; f, err = src.NextFPDU(forever) {
				_, _ = dst.Write(e(f.Offset, bytes.Clone(f.Bytes), f.ULPDU))
			}
		}
		pass(w, src, dst)
	}
}

// terms are those of what src sends.
func (w *wire) terms(src *script.Link) script.Terms {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := w.said
	if src.Conn() == w.endpoint {
		wanted = w.asked
	}
	always := w.asked.rdmac || w.said.rdmac
	return script.Terms{MarkersReceive: wanted.m || always, CRC: w.asked.c || w.said.c || always}
}
