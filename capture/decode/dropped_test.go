package decode_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A leaky source is a capture that lacks some packets, and says so.
type leaky struct {
	from *capture.Reader
	lost func(number uint64) bool
	says uint64 // number of the packet in front of which others are said to be dropped, in addition
	gone uint64
}

func (l *leaky) Next() (*capture.Packet, error) {
	for {
		p, err := l.from.Next()
		if err != nil {
			return nil, err
		}
		if l.lost != nil && l.lost(p.Number) {
			l.gone++
			continue
		}
		if p.Number == l.says {
			l.gone++
		}
		p.Dropped, l.gone = l.gone, 0
		return p, nil
	}
}

// Lost is what it lacks at its end.
func (l *leaky) Lost() uint64 { return l.gone }

// foundAll lists what is found.
type foundAll struct {
	decode.Ignore
	all []string
}

func (f *foundAll) Finding(_ *decode.Connection, e *decode.Finding) {
	f.all = append(f.all, fmt.Sprintf("%v/%v %s in %d", e.Severity, e.Usual, e.Name, e.Packet.Number))
}

// TestDropped has packets dropped while a connection is open, of which an end breaks a rule, and before it: then the
// end is to blame.
func TestDropped(t *testing.T) {
	s := newScript(t, 0)
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		s.send(capture.Dir(d), enhanced(key, mpa.Enhanced{IRD: 4, ORD: 4 + mpa.Depth(d)}))
	}
	file := s.fileBytes()
	for says, want := range map[uint64]string{
		0: "error/error reply-ord-above-ird",
		1: "error/error reply-ord-above-ird", // the SYN comes after that
		2: "note/error reply-ord-above-ird",
		4: "note/error reply-ord-above-ird",
	} {
		r, err := capture.Open(bytes.NewReader(file))
		testrig.Must(t, err)
		f := &foundAll{}
		totals, err := decode.RunPackets(&leaky{from: r, says: says}, decode.Config{}, f)
		testrig.Must(t, err)
		if len(f.all) != 1 || !strings.HasPrefix(f.all[0], want) || (totals.Dropped > 0) != (says > 0) {
			t.Errorf("dropped in front of packet %d: %q, %d dropped", says, f.all, totals.Dropped)
		}
		if told := totals.Findings[decode.Error] == 1; told != strings.HasPrefix(want, "error/") {
			t.Errorf("dropped in front of packet %d: %v", says, totals.Findings)
		}
	}
}

// TestDroppedAny drops packets of captures: what accuses an end is as it was in the whole capture, in front of the
// first packet that was dropped.
func TestDroppedAny(t *testing.T) {
	for _, name := range testrig.Captures(t, "../../interop/testdata/captures") {
		whole := accusations(t, name, func(uint64) bool { return false })
		for every := uint64(2); every < 12; every++ {
			for _, text := range accusations(t, name, func(n uint64) bool { return n%every == 0 }) {
				if !slices.Contains(whole, text) {
					t.Errorf("%s, without each %dth packet: %s", name, every, text)
				}
			}
		}
	}
}

// accusations are the warnings and errors of a capture that lacks some packets.
func accusations(t *testing.T, name string, lost func(uint64) bool) (all []string) {
	t.Helper()
	file, err := os.Open(name)
	testrig.Must(t, err)
	defer file.Close()
	r, err := capture.Open(file)
	testrig.Must(t, err)
	f := &foundAll{}
	_, err = decode.RunPackets(&leaky{from: r, lost: lost}, decode.Config{}, f)
	testrig.Must(t, err)
	for _, text := range f.all {
		if !strings.HasPrefix(text, "note/") {
			all = append(all, text)
		}
	}
	return all
}

// TestDroppedText has the totals tell of what was dropped.
func TestDroppedText(t *testing.T) {
	r, err := capture.Open(bytes.NewReader(newScript(t, 0).close()))
	testrig.Must(t, err)
	var text, objects bytes.Buffer
	plain, json := decode.NewText(&text, decode.TextConfig{}), decode.NewJSON(&objects, decode.JSONConfig{})
	totals, err := decode.RunPackets(&leaky{from: r, says: 2}, decode.Config{}, plain)
	testrig.Must(t, err)
	plain.Totals(totals)
	json.Totals(totals)
	testrig.Must(t, plain.Flush())
	testrig.Must(t, json.Flush())
	if !strings.Contains(text.String(), "dropped from the capture: 1 packet;") || !strings.Contains(objects.String(), `"dropped":1,`) {
		t.Errorf("%s%s", &text, &objects)
	}
}

// TestDroppedLast drops all from the Reply on: that no answer came accuses nobody.
func TestDroppedLast(t *testing.T) {
	s := newScript(t, 0)
	s.send(capture.Forward, enhanced(mpa.KeyRequest, mpa.Enhanced{IRD: 4, ORD: 4}))
	sent := uint64(0)
	last := func(n uint64) bool { sent = n; return n > 4 }
	r, err := capture.Open(bytes.NewReader(s.close()))
	testrig.Must(t, err)
	f := &foundAll{}
	totals, err := decode.RunPackets(&leaky{from: r, lost: last}, decode.Config{}, f)
	testrig.Must(t, err)
	if totals.IWARP != 1 || totals.Dropped != sent-4 || totals.Failed != 0 {
		t.Errorf("%d packets: %v, %q", sent, totals, f.all)
	}
}
