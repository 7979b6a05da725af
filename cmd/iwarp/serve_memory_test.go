package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer"
	"github.com/goiwarp/iwarp/perf"
	"github.com/goiwarp/iwarp/stream"
)

// A memoryRig is the services of iwarp serve, with a bound of memory.
type memoryRig struct {
	*testing.T
	addr   string
	server *serve.Server
	rnic   *iwarp.RNIC
	log    testrig.Buffer
}

func newMemoryRig(t *testing.T, memory int) *memoryRig {
	t.Helper()
	r := &memoryRig{T: t, rnic: iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: int64(memory)}})}
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	cmd := &serveCmd{Rping: true, Perf: true, Cat: true, Dir: t.TempDir(), Writable: true,
		Memory: byteCount(memory), Idle: time.Minute}
	files, err := cmd.files(log)
	testrig.Must(t, err)
	r.server = serve.New(serve.Config{Services: append(cmd.services(r.rnic), files.services()...), Log: log})
	ln, err := (&iwarp.ListenConfig{RNIC: r.rnic}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	r.addr = ln.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.server.Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		testrig.Should(t, <-ended)
		files.close()
	})
	return r
}

// refused reports whether a client was told at startup why it does not come in; any other error is one.
func (r *memoryRig) refused(what string, err error) bool {
	rejected, told := (*iwarp.RejectError)(nil), (*perf.PeerError)(nil)
	why := ""
	switch {
	case err == nil:
		return false
	case errors.As(err, &told):
		why = told.Error()
	case errors.As(err, &rejected):
		why = string(rejected.PrivateData)
	}
	if !strings.Contains(why, "try again later") {
		r.Errorf("%s: %v\n%q", what, err, why)
	}
	return true
}

// echoes has a connection send bytes to the server and have them back.
func (r *memoryRig) echoes(conn *stream.Conn, n int) {
	sent := bytes.Repeat([]byte("all that is sent"), n/16)
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		failed <- err
	}()
	got := make([]byte, len(sent))
	_, err := io.ReadFull(conn, got)
	if err = errors.Join(err, <-failed); err != nil || !bytes.Equal(got, sent) {
		r.Errorf("a connection of cat was cut: %v", err)
	}
}

// copies puts a file and gets it.
func (r *memoryRig) copies(ctx context.Context, i int) error {
	dir, name := r.TempDir(), fmt.Sprint(i)
	file := filepath.Join(dir, name)
	want := bytes.Repeat([]byte(name), 3<<19)
	if err := os.WriteFile(file, want, 0o600); err != nil {
		return err
	}
	c := &transfer.Client{Force: true, Dial: func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
		return d.Dial(ctx, "tcp", r.addr)
	}}
	if _, err := c.Put(ctx, []string{file}, ""); err != nil {
		return err
	}
	if _, err := c.Get(ctx, []string{name}, dir); err != nil {
		return err
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("another file has come, %w", err)
	}
	return nil
}

// measures has iwarp perf measure a little.
func (r *memoryRig) measures(ctx context.Context, size int) error {
	opts := perf.Options{Network: "tcp", Sizes: []int{size}, Depth: 9, Duration: time.Millisecond, NoBaseline: true,
		Ops: []perf.Op{perf.Send}}
	_, err := perf.Connect(ctx, r.addr, opts, perf.Observer{})
	return err
}

func (r *memoryRig) pings(ctx context.Context) error {
	return rping.Client(ctx, r.addr, rping.ClientConfig{Size: rping.MaxSize, Count: 3})
}

// client is one of many, of all services, and says whether it was refused. One that comes in and stays is in the
// middle of its transfer until all have come.
func (r *memoryRig) client(ctx context.Context, i int, came func(), all <-chan struct{}) bool {
	defer came()
	switch i % 4 {
	case 0:
		return r.refused("cp", r.copies(ctx, i))
	case 1:
		return r.refused("rping", r.pings(ctx))
	case 2:
		if i == 2 {
			return r.refused("perf", r.measures(ctx, 64))
		}
	}
	conn, err := stream.Dial(ctx, "tcp", r.addr)
	if r.refused("cat", err) {
		return true
	}
	r.echoes(conn, 1<<20)
	came()
	<-all
	r.echoes(conn, 6<<20)
	testrig.Should(r, conn.Close())
	return false
}

// TestServeMemory has forty connections of all services where memory is for fewer: those that come in have all that
// they need to the end, whoever comes later; the others are told at startup. At the end all of the memory is free
// again.
func TestServeMemory(t *testing.T) {
	const clients, memory = 40, 24 << 20
	r := newMemoryRig(t, memory)
	ctx := testrig.Within(t)
	var came, ended sync.WaitGroup
	all := make(chan struct{})
	refused := make(chan bool, clients)
	came.Add(clients)
	for i := range clients {
		ended.Go(func() { refused <- r.client(ctx, i, sync.OnceFunc(came.Done), all) })
	}
	came.Wait()
	late := r.fill(ctx)
	close(all)
	ended.Wait()
	close(refused)
	for _, conn := range late {
		r.echoes(conn, 3<<20)
		testrig.Should(t, conn.Close())
	}
	n := 0
	for is := range refused {
		if is {
			n++
		}
	}
	if n == 0 || n >= clients-5 {
		t.Errorf("%d of %d were refused", n, clients)
	}
	r.wantFree(memory)
}

// fill has newcomers take all that is left.
func (r *memoryRig) fill(ctx context.Context) (all []*stream.Conn) {
	for {
		conn, err := stream.Dial(ctx, "tcp", r.addr)
		if r.refused("a newcomer", err) {
			return all
		}
		all = append(all, conn)
	}
}

// idle waits until there are no connections.
func (r *memoryRig) idle() {
	for r.server.Stats().Connections() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// wantFree has all memory be free when the last connection has ended.
func (r *memoryRig) wantFree(memory int) {
	r.idle()
	pd, err := r.rnic.AllocPD()
	testrig.Must(r, err)
	if _, err := pd.Reserve(memory); err != nil {
		r.Errorf("not all is free: %v\n%s", err, r.log.String())
	}
	testrig.Must(r, pd.Close())
}

// TestServeMemoryEnds has all of a connection's memory be free again after an end of each kind: in order, by an
// Abort, and of a startup that failed.
func TestServeMemoryEnds(t *testing.T) {
	const memory = 9 << 19 // for one of cat, or two of cp
	r := newMemoryRig(t, memory)
	ctx := testrig.Within(t)
	for range 3 {
		conn, err := stream.Dial(ctx, "tcp", r.addr)
		testrig.Must(t, err)
		_, err = stream.Dial(ctx, "tcp", r.addr)
		r.refused("a second", err)
		testrig.Must(t, conn.QP().Abort())
		_ = conn.Close()
		r.wantFree(memory)
		testrig.Must(t, errors.Join(r.copies(ctx, 1), r.pings(ctx), r.measures(ctx, 64)))
		r.wantFree(memory)
	}
}

// TestServeMemoryTold has the clients of each service hear at startup that there is no memory; those of perf, too,
// for whose measurement alone there is none.
func TestServeMemoryTold(t *testing.T) {
	const memory, control = 16 << 20, 1 << 18
	r := newMemoryRig(t, memory)
	ctx := testrig.Within(t)
	pd, err := r.rnic.AllocPD()
	testrig.Must(t, err)
	release, err := pd.Reserve(memory - control)
	testrig.Must(t, err)
	if err := r.measures(ctx, 100<<10); !r.refused("a measurement", err) || errors.As(err, new(*iwarp.RejectError)) {
		t.Errorf("a measurement: %v", err)
	}
	r.idle()
	rest, err := pd.Reserve(control)
	testrig.Must(t, err)
	_, cat := stream.Dial(ctx, "tcp", r.addr)
	for what, err := range map[string]error{"cat": cat, "cp": r.copies(ctx, 1), "rping": r.pings(ctx),
		"perf": r.measures(ctx, 64)} {
		if !r.refused(what, err) {
			t.Errorf("%s was not refused", what)
		}
	}
	release()
	rest()
	r.wantFree(memory)
	if n := r.server.Stats().Declined; n != 4 {
		t.Errorf("%d were declined, not 4", n)
	}
}
