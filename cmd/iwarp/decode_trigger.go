package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
	"github.com/goiwarp/iwarp/internal/wording"
)

const (
	// afterFinding is for how long packets are saved after a finding.
	afterFinding = time.Second
	// maxCaught is how many files a run writes: a disk must not become full in a night.
	maxCaught = 100
)

// A trigger is --trigger while packets come. It is nil without.
type trigger struct {
	decode.Ignore

	from  decode.Severity
	ring  packetRing
	path  string
	std   streams
	fired bool     // a finding has come since the last packet
	notes []string // findings about this packet

	file  *os.File // while packets are saved
	out   *capture.PacketWriter
	until time.Time
	left  int // bytes that the file may still take
	files int // written so far
	err   error
}

// newTrigger returns what --trigger asks for.
func (c *decodeCmd) newTrigger(std streams) (*trigger, error) {
	if c.Trigger == nil {
		return nil, nil
	}
	t := &trigger{path: cmp.Or(c.Caught, "caught.pcapng"), std: std}
	t.ring.size = int(min(cmp.Or(c.Ring, defaultRing), math.MaxInt/4))
	for t.from = range decode.Error + 1 {
		if t.from.String() == *c.Trigger {
			break
		}
	}
	if info, err := os.Stat(filepath.Dir(t.path)); err != nil || !info.IsDir() {
		return nil, usage("decode: --caught: there is no directory %s", filepath.Dir(t.path))
	}
	return t, nil
}

// with returns a consumer that tells the trigger too.
func (t *trigger) with(to decode.Consumer) decode.Consumer {
	if t == nil {
		return to
	}
	return both{to, t}
}

// Finding is part of decode.Consumer. Packets that were dropped do not keep what a finding may show from being saved.
func (t *trigger) Finding(c *decode.Connection, f *decode.Finding) {
	if f.Usual >= t.from {
		t.fired = true
		t.notes = append(t.notes, export.Comment(c, f))
	}
}

// after is told of each packet when its findings are known.
func (t *trigger) after() func(*capture.Packet) {
	if t == nil {
		return nil
	}
	return func(p *capture.Packet) {
		if t.fired && t.out == nil {
			t.begin()
		}
		if t.fired {
			t.until = p.Time.Add(afterFinding)
		}
		if t.fired = false; t.out == nil {
			t.ring.add(p)
		} else {
			t.save(p, t.notes...)
		}
		t.notes = t.notes[:0]
		if t.out != nil && (p.Time.After(t.until) || t.left <= 0) {
			t.close()
		}
	}
}

// begin begins a file with the packets that were kept.
func (t *trigger) begin() {
	if t.err != nil || t.files >= maxCaught {
		return
	}
	if t.err = t.open(); t.err != nil {
		return
	}
	t.files++
	t.left = 2 * t.ring.size
	t.ring.each(func(p *capture.Packet) { t.save(p) })
	if t.err == nil {
		t.err = t.out.Flush()
	}
	fmt.Fprintf(t.std.err, "%s has the packets around this: %s%s\n", t.file.Name(), t.notes[0],
		wording.If(t.files == maxCaught, " (no further file is written)", ""))
}

// open creates a file that was not there: what an earlier run has caught stays.
func (t *trigger) open() (err error) {
	ext := filepath.Ext(t.path)
	for n := 1; ; n++ {
		path := t.path
		if n > 1 {
			path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(t.path, ext), n, ext)
		}
		t.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err == nil {
		t.out, err = capture.NewPacketWriter(t.file, "iwarp decode")
	}
	return err
}

func (t *trigger) save(p *capture.Packet, comments ...string) {
	t.left -= packetCost + len(p.Data)
	if err := t.out.Packet(p, comments...); t.err == nil {
		t.err = err
	}
}

// close ends the file.
func (t *trigger) close() {
	t.err = cmp.Or(t.err, t.out.Flush(), t.file.Close())
	t.out = nil
}

// end saves what findings at the end of the capture are about.
func (t *trigger) end() error {
	if t == nil {
		return nil
	}
	if t.fired && t.out == nil {
		t.begin()
	}
	if t.out != nil {
		t.close()
	}
	if t.err != nil {
		return fmt.Errorf("decode: --caught: %w", t.err)
	}
	return nil
}

// inTurn calls those functions that are not nil.
func inTurn(all ...func(*capture.Packet)) func(*capture.Packet) {
	return func(p *capture.Packet) {
		for _, f := range all {
			if f != nil {
				f(p)
			}
		}
	}
}
