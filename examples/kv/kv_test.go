package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
)

// newServed is a server with small bounds, and what its clients need to know.
func newServed(t *testing.T, addr string, cfg config) *server {
	t.Helper()
	s, err := newServer(addr, cfg)
	must(t, err)
	t.Cleanup(func() { _ = s.rnic.Close() }) // of tests that have not shut it down
	return s
}

func newClient(t *testing.T, s *server) *client {
	c := &client{addr: s.ln.Addr().String()}
	t.Cleanup(c.close)
	return c
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, c *client, key, want string) {
	t.Helper()
	got, err := c.get(within(t), key)
	if err != nil || got != want {
		t.Errorf("%q is %.40q, want %.40q (%v)", key, got, want, err)
	}
}

const local = "127.0.0.1:0"

// TestManyClients: each client puts far more than its credits, and reads what the others have put.
func TestManyClients(t *testing.T) {
	s := newServed(t, local, config{slots: 1 << 12, slotLen: 128, clients: 6, credits: 3})
	var all sync.WaitGroup
	for i := range 6 {
		c := newClient(t, s)
		all.Go(func() {
			var entries []string
			for j := range 40 {
				entries = append(entries, fmt.Sprint("key ", i, j), fmt.Sprint("value ", i, j))
			}
			if err := c.put(within(t), entries...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must(t, s.shutdown(within(t))) // the six are told, and leave
	for i := range 6 {
		for j := range 40 {
			if got := lookUp(t, &s.table, fmt.Sprint("key ", i, j)); got != fmt.Sprint("value ", i, j) {
				t.Errorf("key %d %d is %q", i, j, got)
			}
		}
	}
}

// lookUp finds a key in the server's memory.
func lookUp(t *testing.T, table *table, key string) string {
	t.Helper()
	for probe := range probes {
		at := (hash(key) + probe) % table.slots * table.slotLen
		e, err := parse(table.mr.Bytes()[at : at+table.slotLen])
		must(t, err)
		if e.key == key {
			return e.value
		}
	}
	return ""
}

// TestGet: what one client has put another reads; a new value takes the place of the old one; and a key that is not there is an error.
func TestGet(t *testing.T) {
	s := newServed(t, local, config{slots: 16, slotLen: 128, clients: 2, credits: 1})
	a, b := newClient(t, s), newClient(t, s)
	must(t, a.put(within(t), "color", "red", "shape", "round"))
	wantValue(t, b, "color", "red")
	must(t, b.put(within(t), "color", "green"))
	wantValue(t, a, "color", "green")
	wantValue(t, a, "shape", "round")
	if _, err := a.get(within(t), "weight"); !errors.Is(err, errNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
	if err := a.put(within(t), "color", strings.Repeat("x", 128)); !errors.Is(err, errTooLong) {
		t.Errorf("a value that is too long: %v", err)
	}
	if err := a.put(within(t), "k", strings.Repeat("x", 128-3-1)); err == nil { // the server says so, as its slot has a longer header
		t.Error("a value that does not fit into the slot was put")
	}
	wantValue(t, a, "color", "green")
}

// TestTorn: a client that meets a slot half of which is old reads it again, until it is whole.
func TestTorn(t *testing.T) {
	s := newServed(t, local, config{slots: 1, slotLen: 128, clients: 1, credits: 1})
	c := newClient(t, s)
	must(t, c.put(within(t), "key", "old value"))
	slot := entry{2, "key", "new value"}.encode()
	_, err := s.table.mr.WriteAt(slot[:20], 0)
	must(t, err)
	read := make(chan string)
	go func() {
		value, _ := c.get(within(t), "key")
		read <- value
	}()
	for c.torn.Load() == 0 {
		runtime.Gosched()
	}
	_, err = s.table.mr.WriteAt(slot, 0)
	must(t, err)
	if got := <-read; got != "new value" {
		t.Errorf("read %q", got)
	}
}

// TestWhole: slots of many segments, which are written all the time, are read whole.
func TestWhole(t *testing.T) {
	const large = 300_000
	s := newServed(t, local, config{slots: 1, slotLen: large + 100, clients: 2, credits: 2})
	writer, reader := newClient(t, s), newClient(t, s)
	must(t, writer.put(within(t), "key", strings.Repeat("a", large)))
	done := make(chan error)
	go func() {
		var entries []string
		for i := range 50 {
			entries = append(entries, "key", strings.Repeat(string(rune('a'+i%26)), large))
		}
		done <- writer.put(within(t), entries...)
	}()
	for reads := 0; ; reads++ {
		value, err := reader.get(within(t), "key")
		if err != nil || len(value) != large || strings.Count(value, value[:1]) != large {
			t.Fatalf("read %d bytes, not all alike: %.5q...%q (%v)", len(value), value, value[max(0, len(value)-5):], err)
		}
		select {
		case err := <-done:
			must(t, err)
			t.Logf("%d whole reads, %d that were torn", reads, reader.torn.Load())
			return
		default:
		}
	}
}

// TestReconnect: a client goes on when its connection is lost, and when there is another server, with other memory.
func TestReconnect(t *testing.T) {
	s := newServed(t, local, config{slots: 16, slotLen: 128, clients: 2, credits: 2})
	c := newClient(t, s)
	must(t, c.put(within(t), "key", "of the first"))
	for _, qp := range s.rnic.QPs() {
		if qp.State() == iwarp.StateRTS {
			must(t, qp.Abort())
		}
	}
	wantValue(t, c, "key", "of the first")

	must(t, s.rnic.Close()) // all at once, as if it had crashed
	next := newServed(t, s.ln.Addr().String(), s.config)
	must(t, c.put(within(t), "key", "of the second"))
	wantValue(t, c, "key", "of the second")
	must(t, next.shutdown(within(t)))
}

// TestLies: a server whose words lead nowhere is an error, and is not tried again and again.
func TestLies(t *testing.T) {
	s := newServed(t, local, config{slots: 16, slotLen: 128, clients: 1, credits: 1})
	must(t, s.table.mr.Deregister())
	var found *iwarp.TerminateError
	if _, err := newClient(t, s).get(within(t), "key"); !errors.As(err, &found) || !found.Remote {
		t.Errorf("a server without a table: %v", err)
	}
	if err := new(session).welcome(make([]byte, welcomeLen)); err == nil {
		t.Error("a table without slots is believed in")
	}
}

// TestShutdown: what a client was told that it has put is in the table, whenever the server leaves.
func TestShutdown(t *testing.T) {
	s := newServed(t, local, config{slots: 1 << 12, slotLen: 128, clients: 4, credits: 4})
	var all sync.WaitGroup
	put := make([]int, 4)
	for i := range put {
		c := newClient(t, s)
		ctx, cancel := context.WithCancel(within(t))
		t.Cleanup(cancel)
		started := make(chan struct{})
		all.Go(func() {
			for ; c.put(ctx, fmt.Sprint(i, " ", put[i]), "value") == nil; put[i]++ {
				if put[i] == 3 {
					close(started)
				}
			}
		})
		<-started
		defer cancel() // the clients would wait for another server
		defer context.AfterFunc(s.gone(), cancel)()
	}
	must(t, s.shutdown(within(t)))
	all.Wait()
	for i, n := range put {
		for j := range n {
			if lookUp(t, &s.table, fmt.Sprint(i, " ", j)) == "" {
				t.Errorf("client %d has put %d, and %d is not there", i, n, j)
			}
		}
	}
}

// gone ends when the server does.
func (s *server) gone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	stop := s.stop
	s.stop = func() { stop(); cancel() }
	return ctx
}

// TestNoPlace: one client more than there are places for is told so, and gets the next place that is free.
func TestNoPlace(t *testing.T) {
	s := newServed(t, local, config{slots: 16, slotLen: 128, clients: 1, credits: 1})
	first, second := newClient(t, s), newClient(t, s)
	must(t, first.put(within(t), "key", "value"))
	var no *iwarp.RejectError
	if _, err := second.get(within(t), "key"); !errors.As(err, &no) || string(no.PrivateData) != "no place for another client" {
		t.Fatalf("a second client: %v", err)
	}
	first.close()
	for errors.As(func() error { _, err := second.get(within(t), "key"); return err }(), &no) {
		runtime.Gosched()
	}
	wantValue(t, second, "key", "value")
}

// TestGreedy: a client that sends more than its credits loses its connection, and the others keep theirs.
func TestGreedy(t *testing.T) {
	s := newServed(t, local, config{slots: 16, slotLen: 128, clients: 2, credits: 2})
	good, bad := newClient(t, s), newClient(t, s)
	must(t, good.put(within(t), "key", "value"))
	qp, err := iwarp.Dial(within(t), "tcp", bad.addr)
	must(t, err)
	defer qp.Close()
	_ = qp.PostSend(&iwarp.SendWR{Inline: []byte("?")})
	<-qp.Done()
	wantValue(t, good, "key", "value")
	must(t, good.put(within(t), "key", "another"))
	wantValue(t, good, "key", "another")
}

// TestParse: what is not a whole entry is torn, and nothing breaks.
func TestParse(t *testing.T) {
	whole := entry{7, "key", "value"}.encode()
	if e, err := parse(append(whole, 0, 0)); err != nil || e != (entry{7, "key", "value"}) {
		t.Errorf("%v, %v", e, err)
	}
	for at := range whole {
		for _, bit := range []byte{1, 0x80} {
			broken := append([]byte(nil), whole...)
			broken[at] ^= bit
			if e, err := parse(broken); !errors.Is(err, errTorn) {
				t.Errorf("byte %d changed: %v, %v", at, e, err)
			}
		}
	}
	if e, err := parse(make([]byte, 64)); err != nil || e.version != 0 {
		t.Errorf("an empty slot: %v, %v", e, err)
	}
}

// FuzzParse: no bytes break the reader of slots, and what is taken for an entry is written the same.
func FuzzParse(f *testing.F) {
	f.Add(make([]byte, headerLen))
	f.Add(entry{7, "key", "value"}.encode())
	f.Fuzz(func(t *testing.T, slot []byte) {
		if len(slot) < headerLen {
			return // a client reads whole slots
		}
		if e, err := parse(slot); err == nil && e.version != 0 && string(e.encode()) != string(slot[:headerLen+len(e.key)+len(e.value)]) {
			t.Errorf("%x reads as %+v", slot, e)
		}
	})
}
