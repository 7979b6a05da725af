package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A scene is a capture in the making.
type scene struct {
	t    *testing.T
	file bytes.Buffer
	w    *capture.Writer
	now  time.Time
	port uint16
}

func newScene(t *testing.T) *scene {
	c := &scene{t: t, now: time.Unix(1000, 0)}
	w, err := capture.NewWriter(&c.file, capture.WriterConfig{})
	testrig.Must(t, err)
	c.w = w
	return c
}

// open opens a connection.
func (c *scene) open() *capture.Flow {
	c.port++
	f, err := c.w.Open(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), c.port), netip.MustParseAddrPort("10.0.0.2:9"), c.now)
	testrig.Must(c.t, err)
	return f
}

// bystanders lets bytes pass that are no iWARP.
func (c *scene) bystanders(size int) {
	f := c.open()
	for ; size > 0; size -= 1000 {
		c.now = c.now.Add(time.Millisecond)
		testrig.Must(c.t, f.Send(capture.Forward, c.now, bytes.Repeat([]byte{'x'}, 1000)))
	}
}

// greedy has a connection whose Responder breaks a rule.
func (c *scene) greedy() {
	f := c.open()
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		e := mpa.Enhanced{IRD: 4, ORD: 4 + mpa.Depth(d)}
		testrig.Must(c.t, f.Send(capture.Dir(d), c.now, mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true,
			Rev: 2, PrivateData: mpa.AppendEnhanced(nil, &e)})))
	}
}

// save writes the capture.
func (c *scene) save() string {
	testrig.Must(c.t, c.w.Flush())
	name := filepath.Join(c.t.TempDir(), "traffic.pcapng")
	testrig.Must(c.t, os.WriteFile(name, c.file.Bytes(), 0o600))
	return name
}

// TestTrigger has two faults among much else: each is in a file of its own, with what was shortly before it and for a
// second after it. A third is in the first second of the second, and in its file.
func TestTrigger(t *testing.T) {
	c := newScene(t)
	c.bystanders(3 << 20)
	c.greedy()
	c.bystanders(3 << 20)
	c.greedy()
	c.now = c.now.Add(time.Second / 2)
	c.greedy()
	name, caught := c.save(), filepath.Join(t.TempDir(), "caught.pcapng")
	var out, errs bytes.Buffer
	status := run([]string{"decode", name, "--trigger", "error", "--ring", "1M", "--caught", caught}, streams{&out, &errs})
	if status != statusFindings || strings.Count(errs.String(), "has the packets around this: iwarp: error reply-ord-above-ird") != 2 {
		t.Errorf("status %d: %s", status, &errs)
	}
	for n, want := range []int{1, 2} {
		file := caught
		if n > 0 {
			file = strings.Replace(caught, ".pcapng", "-2.pcapng", 1)
		}
		b, err := os.ReadFile(file)
		testrig.Must(t, err)
		var out bytes.Buffer
		run([]string{"decode", file}, streams{&out, &errs})
		if !strings.Contains(out.String(), fmt.Sprintf("; %d error", want)) || len(b) < 1<<19 || len(b) > 5<<19 {
			t.Errorf("%s has %d bytes: %s", file, len(b), &out)
		}
		if !bytes.Contains(b, []byte("iwarp: error reply-ord-above-ird [E04], connection ")) {
			t.Errorf("%s has no comment", file)
		}
	}
	if all, err := filepath.Glob(filepath.Join(filepath.Dir(caught), "*")); err != nil || len(all) != 2 {
		t.Errorf("files: %q (%v)", all, err)
	}
}

// TestTriggerQuiet has nothing as bad as what is waited for: no file is made. What an earlier run has caught stays.
func TestTriggerQuiet(t *testing.T) {
	c := newScene(t)
	c.greedy()
	caught := filepath.Join(t.TempDir(), "caught")
	testrig.Must(t, os.WriteFile(caught, []byte("of an earlier run"), 0o600))
	name := c.save()
	var out, errs bytes.Buffer
	run([]string{"decode", name, "--filter", "0", "--trigger", "warning", "--caught", caught}, streams{&out, &errs})
	run([]string{"decode", "../../interop/testdata/captures/siw-rping.pcap", "--trigger", "warning", "--caught", caught},
		streams{&out, &errs})
	all, err := filepath.Glob(filepath.Join(filepath.Dir(caught), "*"))
	testrig.Must(t, err)
	b, err := os.ReadFile(caught)
	testrig.Must(t, err)
	if len(all) != 2 || string(b) != "of an earlier run" {
		t.Errorf("files: %q; %q\n%s", all, b, &errs)
	}
}

// TestRing has packets of any size: the last are there in their order, and memory is bounded.
func TestRing(t *testing.T) {
	r := packetRing{size: minRing}
	for i := range 100_000 {
		r.add(&capture.Packet{Number: uint64(i), Data: bytes.Repeat([]byte{byte(i)}, i*7919%3000)})
	}
	r.add(&capture.Packet{Number: 100_000, Data: make([]byte, 1<<20)})
	bytesHeld, next := 0, uint64(0)
	for _, part := range r.parts {
		bytesHeld += cap(part.data) + packetCost*cap(part.packets)
	}
	held := 0
	r.each(func(p *capture.Packet) {
		if next > 0 && p.Number != next {
			t.Errorf("packet %d, want %d", p.Number, next)
		}
		next = p.Number + 1
		if len(p.Data) > 0 && p.Number < 100_000 && p.Data[len(p.Data)-1] != byte(p.Number) {
			t.Errorf("packet %d has the bytes of another", p.Number)
		}
		held += len(p.Data)
	})
	if next != 100_001 || held < minRing*3/2 || bytesHeld > 3*minRing {
		t.Errorf("up to packet %d, %d bytes of packets in %d of memory", next, held, bytesHeld)
	}
}
