package conform_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/mpa"
)

// A wire stands between the suite and our endpoint and breaks a rule on the way: what
// the suite sees is a peer that breaks it.
type wire struct {
	suite, endpoint *memConn

	mu    sync.Mutex
	asked terms // of the suite's startup frame, as the endpoint knows it
	said  terms // of the endpoint's
}

// terms are what a startup frame says.
type terms struct{ m, c, rdmac bool }

// A way carries one direction from src to dst, up to its end.
type way func(w *wire, src, dst *memConn)

// run carries both directions until both have ended.
func (w *wire) run(toPeer, fromPeer way) {
	var both sync.WaitGroup
	both.Go(func() { toPeer(w, w.suite, w.endpoint) })
	both.Go(func() { fromPeer(w, w.endpoint, w.suite) })
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
		w := &wire{suite: suite.(*memConn), endpoint: endpoint.(*memConn)}
		w.run(toPeer, fromPeer)
	}
}

// pass carries octets as they are.
func pass(_ *wire, src, dst *memConn) {
	_, err := io.Copy(plainWriter{dst}, plainReader{src})
	if errors.Is(err, errReset) {
		_ = dst.SetLinger(0)
		dst.Close()
		_ = src.SetLinger(0)
		src.Close()
		return
	}
	_ = dst.CloseWrite()
}

type (
	plainReader struct{ io.Reader }
	plainWriter struct{ io.Writer }
)

// shut closes the connection on both sides, and carries nothing.
func shut(w *wire, _, _ *memConn) { w.hangUp() }

// readFrame reads a startup frame. What it read of one that does not come is
// returned, with ok false.
func readFrame(src io.Reader) (b []byte, ok bool) {
	b = make([]byte, mpa.StartupHeaderLen)
	n, err := io.ReadFull(src, b)
	if err != nil {
		return b[:n], false
	}
	data := make([]byte, mpa.StartupFrame(b).PDLength())
	n, err = io.ReadFull(src, data)
	return append(b, data[:n]...), err == nil
}

// frame edits a startup frame as it passes, and carries on with next, or as it is.
// The frame is kept as the endpoint knows it.
func frame(edit func(*mpa.StartupFields), next ...way) way {
	return func(w *wire, src, dst *memConn) {
		b, ok := readFrame(src)
		if !ok {
			_, _ = dst.Write(b)
			pass(w, src, dst)
			return
		}
		after := b
		if edit != nil {
			f := mpa.StartupFrame(b).Fields()
			edit(&f)
			after = mpa.AppendStartup(nil, &f)
		}
		if src == w.endpoint {
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
	return func(w *wire, src, dst *memConn) {
		b, ok := readFrame(src)
		if ok && bad(b) {
			shut(w, src, dst)
			return
		}
		_, _ = dst.Write(b)
		pass(w, src, dst)
	}
}

// key replaces the first octets, which are a frame's key, by what edit makes of them.
func key(n int, edit func([]byte) []byte, next ...way) way {
	return func(w *wire, src, dst *memConn) {
		b := make([]byte, n)
		n, err := io.ReadFull(src, b)
		if err == nil {
			b = edit(b)
		}
		_, _ = dst.Write(b[:min(n, len(b))])
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

// say sends octets before anything that comes from src.
func say(octets []byte, next way) way {
	return func(w *wire, src, dst *memConn) {
		_, _ = dst.Write(octets)
		next(w, src, dst)
	}
}

// swallow carries nothing, up to the end.
func swallow(_ *wire, src, dst *memConn) {
	_, _ = io.Copy(io.Discard, plainReader{src})
	_ = dst.CloseWrite()
}

// An edit changes the octets of an FPDU that begins at an offset of the stream. It
// may return none, or several.
type edit func(offset uint64, octets, ulpdu []byte) []byte

// fpdus edits what the endpoint sends in Full Operation. Both startup frames must
// have passed by frame.
func fpdus(e edit) way {
	return func(w *wire, src, dst *memConn) {
		var r *mpa.Reader
		var in []byte
		for {
			var buf [4096]byte
			n, err := src.Read(buf[:])
			if err != nil {
				_, _ = dst.Write(in)
				pass(w, src, dst)
				return
			}
			if r == nil { // by now both frames have passed
				r = w.reader(src)
			}
			in = append(in, buf[:n]...)
			for k, ok := next(r, in, e, dst); ok; k, ok = next(r, in, e, dst) {
				in = in[k:]
			}
		}
	}
}

// next edits one FPDU, if there is a whole one.
func next(r *mpa.Reader, in []byte, e edit, dst io.Writer) (n int, ok bool) {
	f, n, err := r.Next(bytes.Clone(in))
	if err != nil || n == 0 {
		return 0, false
	}
	_, _ = dst.Write(e(f.Offset, bytes.Clone(in[:n]), f.ULPDU))
	return n, true
}

// reader returns a Reader of what src sends.
func (w *wire) reader(src *memConn) *mpa.Reader {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := w.said
	if src == w.endpoint {
		wanted = w.asked
	}
	always := w.asked.rdmac || w.said.rdmac
	r := mpa.NewReader(wanted.m || always, w.asked.c || w.said.c || always)
	return &r
}
