package transfer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(child(role))
	}
	testrig.Main(m)
}

// A rig is a server of a directory, and a directory of the client's.
type rig struct {
	t           *testing.T
	there, here string
	server      *Server
	wrap        func(net.Conn) net.Conn // of the client's end; nil: none
	rnic        *iwarp.RNIC             // the server's; nil: each connection has one

	serving sync.WaitGroup
	mu      sync.Mutex
	errs    []error // of Serve
	told    []Event // to the client
}

func newRig(t *testing.T, adjust ...func(*ServerConfig)) *rig {
	t.Helper()
	r := &rig{t: t, there: t.TempDir(), here: t.TempDir()}
	cfg := ServerConfig{Dir: r.there, Writable: true}
	for _, f := range adjust {
		f(&cfg)
	}
	var err error
	r.server, err = NewServer(cfg)
	testrig.Must(t, err)
	t.Cleanup(func() {
		r.serving.Wait()
		testrig.Should(t, r.server.Close())
	})
	return r
}

// dial connects in memory. Neither the startup nor the close of one of many connections has to be in time.
func (r *rig) dial(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
	ours, theirs := testrig.Pipe("client", "server")
	// as a socket's: without a bound all of a file may be in memory
	_, _ = ours.SetWriteBuffer(1<<18), theirs.SetWriteBuffer(1<<18)
	r.serving.Go(func() { r.serve(ctx, theirs) })
	conn := net.Conn(ours)
	if r.wrap != nil {
		conn = r.wrap(conn)
	}
	d.MPA.Timeout, d.QP.CloseTimeout = testrig.Soon, testrig.Soon
	return d.Initiate(ctx, conn, nil)
}

// serve is the server's end of a connection.
func (r *rig) serve(ctx context.Context, conn net.Conn) {
	req, err := (&iwarp.ListenConfig{RNIC: r.rnic, RequestTimeout: testrig.Soon}).Respond(ctx, conn, nil)
	if err == nil && !Knows(req) {
		err = errors.New("not for this server")
	}
	if err == nil {
		err = r.server.Serve(ctx, req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// served waits until all connections have ended, and returns the server's errors.
func (r *rig) served() error {
	r.serving.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// client returns one.
func (r *rig) client(adjust ...func(*Client)) *Client {
	c := &Client{Dial: r.dial, Watch: func(e Event) { r.told = append(r.told, e) }}
	for _, f := range adjust {
		f(c)
	}
	return c
}

func resume(c *Client)    { c.Resume = true }
func force(c *Client)     { c.Force = true }
func recursive(c *Client) { c.Recursive = true }

// put puts a file of the client's directory into the server's.
func (r *rig) put(name string, adjust ...func(*Client)) error {
	r.t.Helper()
	_, err := r.client(adjust...).Put(testrig.Within(r.t), []string{filepath.Join(r.here, name)}, "")
	return err
}

// get gets a file of the server's into the client's directory.
func (r *rig) get(name string, adjust ...func(*Client)) error {
	r.t.Helper()
	_, err := r.client(adjust...).Get(testrig.Within(r.t), []string{name}, r.here)
	return err
}

// during has something happen once, when the first bytes of a file have gone.
func (r *rig) during(f func()) func(*Client) {
	return func(c *Client) {
		watch, over := c.Watch, false
		c.Watch = func(e Event) {
			watch(e)
			if _, moved := e.(Moved); moved && !over {
				over = true
				f()
			}
		}
	}
}

// outcome is the last that was told.
func (r *rig) outcome() message.Code {
	r.t.Helper()
	for _, e := range slices.Backward(r.told) {
		if o, ok := e.(*Outcome); ok {
			return o.Code
		}
	}
	r.t.Fatal("nothing was told")
	return 0
}

// leaves has a copy leave something, for a reason.
func (r *rig) leaves(err error, code message.Code) {
	r.t.Helper()
	var left *IncompleteError
	if !errors.As(err, &left) || left.Left == 0 || r.outcome() != code {
		r.t.Errorf("got %v (%v), want %v", err, r.told[max(len(r.told)-1, 0):], code)
	}
}

// randomBytes returns n bytes of a pseudo-random sequence.
func randomBytes(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), 1}).Read(b)
	return b
}

// long is when the files of tests were changed.
var long = time.Date(2001, 2, 3, 4, 5, 6, 789000000, time.UTC)

// made makes a file, and returns its name.
func made(t testing.TB, data []byte, elements ...string) string {
	t.Helper()
	name := filepath.Join(elements...)
	testrig.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	testrig.Must(t, os.WriteFile(name, data, 0o640))
	testrig.Must(t, os.Chtimes(name, long, long))
	return name
}

// has wants a file with contents, and mode and time as made makes it.
func has(t testing.TB, data []byte, elements ...string) {
	t.Helper()
	name := filepath.Join(elements...)
	got, err := os.ReadFile(name)
	testrig.Must(t, err)
	if !bytes.Equal(got, data) {
		t.Errorf("%s: %d bytes are not the %d that it is to have", name, len(got), len(data))
	}
	info, err := os.Stat(name)
	testrig.Must(t, err)
	if info.Mode().Perm() != 0o640 || !info.ModTime().Equal(long) {
		t.Errorf("%s: %v, %v", name, info.Mode(), info.ModTime())
	}
}

// lists wants names in a directory, and nothing else.
func lists(t testing.TB, dir string, want ...string) {
	t.Helper()
	var got []string
	testrig.Must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	}))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s has %s, and is to have %s", dir, strings.Join(got, " "), strings.Join(want, " "))
	}
}
