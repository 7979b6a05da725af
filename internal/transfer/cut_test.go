package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// A knife is a connection that ends after so many bytes, in either direction, or so many writes.
type knife struct {
	net.Conn
	bytes, writes *atomic.Int64
}

// spend counts, and resets the connection when there is nothing left.
func (k knife) spend(left *atomic.Int64, n int) error {
	if left.Add(-int64(n)) > 0 {
		return nil
	}
	_ = k.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
	_ = k.Close()
	return net.ErrClosed
}

// Write writes as much as there is left.
func (k knife) Write(b []byte) (n int, err error) {
	if err := k.spend(k.writes, 1); err != nil {
		return 0, err
	}
	if left := k.bytes.Load(); int64(len(b)) >= left {
		n, _ = k.Conn.Write(b[:max(left, 0)])
		return n, k.spend(k.bytes, len(b))
	}
	n, err = k.Conn.Write(b)
	return n, errors.Join(err, k.spend(k.bytes, n))
}

// Read reads, and ends the connection after it if that is to be.
func (k knife) Read(b []byte) (n int, err error) {
	n, err = k.Conn.Read(b)
	_ = k.spend(k.bytes, n)
	return n, err
}

// cutAfter has the client's connections end.
func (r *rig) cutAfter(n, writes int64) (left *atomic.Int64) {
	k := knife{bytes: new(atomic.Int64), writes: new(atomic.Int64)}
	k.bytes.Store(n)
	k.writes.Store(writes)
	r.wrap = func(c net.Conn) net.Conn { return knife{c, k.bytes, k.writes} }
	return k.bytes
}

const never = 1 << 40

// ways are the two directions of a copy of f, with where it comes to be.
var ways = map[string]func(r *rig, adjust ...func(*Client)) error{
	"put": func(r *rig, adjust ...func(*Client)) error { return r.put("f", adjust...) },
	"get": func(r *rig, adjust ...func(*Client)) error { return r.get("f", adjust...) },
}

// from and to are the directories of a way.
func (r *rig) from(way string) string {
	if way == "put" {
		return r.here
	}
	return r.there
}

func (r *rig) to(way string) string {
	if way == "put" {
		return r.there
	}
	return r.here
}

// cut copies f until it is cut, which must leave nothing with its name that is not whole, and then goes on until it is
// there.
func (r *rig) cut(t *testing.T, way string, data []byte, cuts func() (n, writes int64)) {
	t.Helper()
	made(t, data, r.from(way), "f")
	for range 3 {
		r.cutAfter(cuts())
		err := ways[way](r, resume)
		r.serving.Wait()
		if _, bad := os.Stat(filepath.Join(r.to(way), "f")); bad == nil {
			has(t, data, r.to(way), "f")
		} else if err == nil {
			t.Fatal("it has succeeded, and there is nothing")
		}
	}
	r.wrap = nil
	if err := ways[way](r, resume); err != nil {
		t.Fatalf("%v: %v", err, r.told[max(len(r.told)-2, 0):])
	}
	has(t, data, r.to(way), "f")
	lists(t, r.to(way), "f")
	r.serving.Wait()
}

// TestCutAtBytes cuts connections after any number of bytes, again and again.
func TestCutAtBytes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	data := randomBytes(5<<20+12345, 8)
	for way := range ways {
		for range 3 {
			newRig(t).cut(t, way, data, func() (int64, int64) { return random.Int64N(int64(len(data)) + 10000), never })
		}
		for range 3 { // among the first messages, and the last
			newRig(t).cut(t, way, data[:70000], func() (int64, int64) { return random.Int64N(2000), never })
			newRig(t).cut(t, way, data[:70000], func() (int64, int64) { return 70000 + random.Int64N(2000), never })
		}
	}
}

// TestServerEnds has a server end amid a copy, and the client be told by an end in order of the connection, and go on
// with another one.
func TestServerEnds(t *testing.T) {
	for _, way := range []string{"put", "get"} {
		r, data := newRig(t), randomBytes(40<<20, 12)
		made(t, data, r.from(way), "f")
		serving, end := context.WithCancelCause(testrig.Within(t))
		why := errors.New("that is enough")
		dial := func(c *Client) {
			c.Dial = func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
				ours, theirs := testrig.Pipe("client", "server")
				r.serving.Go(func() { r.serve(serving, theirs) })
				return d.Initiate(ctx, ours, nil)
			}
		}
		err := ways[way](r, dial, r.during(func() { end(why) }))
		if !errors.Is(err, iwarp.ErrPeerClosed) || !strings.Contains(err.Error(), "the server has left") ||
			!strings.HasSuffix(err.Error(), "in order") {
			t.Errorf("%s: the client has %v", way, err)
		}
		if got := r.served(); !errors.Is(got, why) {
			t.Errorf("%s: the server has %v", way, got)
		}
		testrig.Must(t, ways[way](r, resume))
		has(t, data, r.to(way), "f")
	}
}

// TestCutAtMessages cuts connections at each of the client's messages.
func TestCutAtMessages(t *testing.T) {
	t.Parallel()
	data := randomBytes(2<<20+1, 9)
	for way := range ways {
		for n := int64(1); n < 16; n++ {
			newRig(t).cut(t, way, data, func() (int64, int64) { return never, n })
		}
	}
}

// TestResumeIsCheap sends what is missing, and not what is there.
func TestResumeIsCheap(t *testing.T) {
	const size, cut = 12 << 20, 9 << 20
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			r, data := newRig(t), randomBytes(size, 10)
			made(t, data, r.from(way), "f")
			r.cutAfter(cut, never)
			if ways[way](r) == nil {
				t.Fatal("it was not cut")
			}
			r.serving.Wait()
			info, err := os.Stat(filepath.Join(r.to(way), ".f.iwarp-part"))
			testrig.Must(t, err)
			left := r.cutAfter(never, never)
			r.leaves(ways[way](r), message.Unfinished)
			testrig.Must(t, ways[way](r, resume))
			has(t, data, r.to(way), "f")
			if took := never - left.Load(); took > size-info.Size()+200<<10 {
				t.Errorf("%d bytes passed, and %d of %d were there", took, info.Size(), size)
			}
		})
	}
}

// TestForceBeginsAnew does not look at what a cut has left.
func TestForceBeginsAnew(t *testing.T) {
	r, data := newRig(t), randomBytes(1<<20, 11)
	made(t, data, r.here, "f")
	part := made(t, randomBytes(3<<20, 12), r.there, ".f.iwarp-part")
	other := filepath.Join(r.there, "hard")
	testrig.Must(t, os.Link(part, other)) // whoever has it otherwise keeps it
	testrig.Must(t, r.put("f", force))
	has(t, data, r.there, "f")
	has(t, randomBytes(3<<20, 12), other)
	lists(t, r.there, "f", "hard")
}

// TestSpoiledPart resumes what is not what it was: a part with other bytes, or of another file, shorter or longer.
func TestSpoiledPart(t *testing.T) {
	t.Parallel()
	data := randomBytes(3<<20+7, 13)
	for name, part := range map[string][]byte{
		"empty": nil, "other": randomBytes(2<<20, 14), "longer": randomBytes(9<<20, 15), "whole": data,
		"zeros":    make([]byte, len(data)),
		"one byte": bytes.Join([][]byte{data[:2<<20], {data[2<<20] ^ 1}, data[2<<20+1:]}, nil),
	} {
		for way := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				r := newRig(t)
				made(t, data, r.from(way), "f")
				made(t, part, r.to(way), ".f.iwarp-part")
				testrig.Must(t, ways[way](r, resume))
				has(t, data, r.to(way), "f")
				lists(t, r.to(way), "f")
			})
		}
	}
}

// TestSecondName has a part that is complete already: the system has died between its two names. The file that it is is
// not written to.
func TestSecondName(t *testing.T) {
	for name, adjust := range map[string]func(*Client){"force": force,
		"both": func(c *Client) { c.Force, c.Resume = true, true }} {
		t.Run(name, func(t *testing.T) {
			r, old, data := newRig(t), randomBytes(2<<20, 16), randomBytes(2<<20+1, 17)
			made(t, data, r.here, "f")
			at := made(t, old, r.there, "f")
			testrig.Must(t, os.Link(at, filepath.Join(r.there, ".f.iwarp-part")))
			testrig.Must(t, os.Link(at, filepath.Join(r.there, "third")))
			testrig.Must(t, r.put("f", adjust))
			has(t, data, r.there, "f")
			has(t, old, r.there, "third")
			lists(t, r.there, "f", "third")
		})
	}
}

// TestChanges has a file change while it is sent: it does not get its name, and is right after the next copy.
func TestChanges(t *testing.T) {
	data := randomBytes(4<<20+99, 18)
	for name, change := range map[string]func(t *testing.T, at string) []byte{
		"grows":   func(t *testing.T, at string) []byte { return appended(t, at, data, []byte("more")) },
		"shrinks": func(t *testing.T, at string) []byte { made(t, data[:5000], at); return data[:5000] },
		"is another": func(t *testing.T, at string) []byte {
			now := randomBytes(len(data), 19)
			testrig.Must(t, os.WriteFile(at, now, 0o640))
			return now
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			at, now := made(t, data, r.here, "f"), []byte(nil)
			r.leaves(r.put("f", r.during(func() { now = change(t, at) })), message.Changed)
			lists(t, r.there, ".f.iwarp-part")
			made(t, now, at) // with the time that has wants
			testrig.Must(t, r.put("f", resume))
			has(t, now, r.there, "f")
		})
	}
	t.Run("at the server", func(t *testing.T) {
		r := newRig(t)
		at := made(t, randomBytes((window+3)*message.MaxBlock, 20), r.there, "f") // which is never sent before the change
		r.leaves(r.get("f", r.during(func() { made(t, data[:5000], at) })), message.Changed)
		lists(t, r.here, ".f.iwarp-part")
	})
}

func appended(t *testing.T, at string, data, more []byte) []byte {
	t.Helper()
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
	testrig.Must(t, err)
	_, err = f.Write(more)
	testrig.Must(t, errors.Join(err, f.Close()))
	return fmt.Append(bytes.Clone(data), string(more))
}
