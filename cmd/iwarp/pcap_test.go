package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An album is the connections of a capture, octet by octet.
type album struct {
	conns []*capture.Connection
	octs  map[*capture.Connection]*[2][]byte
	ends  map[*capture.Connection]*[2]capture.EndReason
	bad   error
}

func (a *album) Opened(c *capture.Connection) {
	a.conns = append(a.conns, c)
	a.octs[c], a.ends[c] = new([2][]byte), new([2]capture.EndReason)
}

func (a *album) Segment(*capture.Connection, *capture.Segment) {}
func (a *album) Forgotten(*capture.Connection)                 {}

func (a *album) Data(c *capture.Connection, d capture.Data) {
	s := &a.octs[c][d.Dir]
	*s = append(*s, d.Octets...)
}

func (a *album) Ended(c *capture.Connection, e capture.End) { a.ends[c][e.Dir] = e.Reason }

func (a *album) Gap(c *capture.Connection, g capture.Gap) {
	a.bad = fmt.Errorf("%v %v: %d octets missing at %d: %v", c, g.Dir, g.Length, g.Offset, g.Cause)
}

func (a *album) Skipped(p *capture.Packet, why capture.Skip) {
	a.bad = fmt.Errorf("packet %d is skipped: %v", p.Number, why)
}

// readAlbum reads a whole capture, without a hole.
func readAlbum(path string) (*album, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := capture.Open(file)
	if err != nil {
		return nil, err
	}
	a := &album{octs: map[*capture.Connection]*[2][]byte{}, ends: map[*capture.Connection]*[2]capture.EndReason{}}
	t := capture.NewTracker(capture.Config{}, a)
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		t.Packet(p)
	}
	t.Flush()
	return a, a.bad
}

// describe accounts for every octet of a connection without markers.
func (a *album) describe(c *capture.Connection) (text string, err error) {
	if !c.Handshake() {
		return "", fmt.Errorf("%v: no handshake", c)
	}
	for _, d := range []capture.Dir{capture.Forward, capture.Backward} {
		what, err := inWords(a.octs[c][d], [2]string{mpa.KeyRequest, mpa.KeyReply}[d])
		if err != nil {
			return "", fmt.Errorf("%v %v: %w", c, d, err)
		}
		text += fmt.Sprintf("%v %s, %v\n", d, what, a.ends[c][d])
	}
	return text, nil
}

// inWords says what a direction has: a startup frame, and FPDUs with CRCs; or nothing.
func inWords(b []byte, key string) (string, error) {
	if len(b) == 0 {
		return "nothing", nil
	}
	f, err := mpa.ParseStartup(b)
	if err != nil || f.Key() != key {
		return "", fmt.Errorf("begins with % x (%v)", b[:min(len(b), mpa.StartupHeaderLen)], err)
	}
	counts, err := countMessages(b[len(f):])
	return fmt.Sprintf("%s Rev %d%s", key[7:10], f.Rev(), counts), err
}

// countMessages takes FPDUs to the last octet, and counts messages by their opcode.
func countMessages(b []byte) (text string, err error) {
	rd, n := mpa.NewReader(false, true), map[rdmap.Opcode]int{}
	for len(b) > 0 {
		f, used, err := rd.Next(b)
		if err != nil || used == 0 {
			return "", fmt.Errorf("%d octets at the end are no FPDU (%v)", len(b), err)
		}
		s, err := ddp.Parse(f.ULPDU)
		if err != nil {
			return "", err
		}
		if s.Last {
			n[rdmap.OpcodeOf(&s.Header)]++
		}
		b = b[used:]
	}
	for op := rdmap.Opcode(0); op < 16; op++ {
		if n[op] > 0 {
			text += fmt.Sprintf(", %d %v", n[op], op)
		}
	}
	return text, nil
}

// capturedCmd is the scripts' command "captured FILE [OTHER]": it prints what is in a
// capture, in which nothing may be missing. OTHER is from the other end, and has the same
// octets.
func capturedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: captured FILE [OTHER]")
	}
	a, err := readAlbum(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, c := range a.conns {
		text, err := a.describe(c)
		ts.Check(err)
		fmt.Fprint(ts.Stdout(), text)
	}
	if len(args) == 1 {
		return
	}
	b, err := readAlbum(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(a.conns) != len(b.conns) {
		ts.Fatalf("%d connections, and %d at the other end", len(a.conns), len(b.conns))
	}
	for i, c := range a.conns {
		if d := b.conns[i]; c.String() != d.String() || !bytes.Equal(a.octs[c][0], b.octs[d][0]) || !bytes.Equal(a.octs[c][1], b.octs[d][1]) {
			ts.Fatalf("%v differs from %v of the other end", c, d)
		}
	}
}

// TestRecordingFails ends a run whose file cannot be written, and says why.
func TestRecordingFails(t *testing.T) {
	f := pcapFlags{Pcap: filepath.Join(t.TempDir(), "x.pcapng")}
	err := f.record(t.Context(), streams{io.Discard, io.Discard}, func(ctx context.Context, r *recording) error {
		_ = r.file.Close()
		end := netip.MustParseAddrPort("127.0.0.1:1")
		if _, err := r.w.Open(end, end, time.Unix(0, 0)); err != nil {
			t.Error(err)
		}
		_ = r.w.Flush()
		<-ctx.Done()
		return errors.New("interrupted")
	})
	if !errors.Is(err, errRecording) || !errors.Is(err, os.ErrClosed) || strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	f.Pcap = filepath.Join(t.TempDir(), "y.pcapng")
	failed := errors.New("failed")
	if err := f.record(t.Context(), streams{}, func(context.Context, *recording) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the run's own error", err)
	}
}

// TestRecordingLimit leaves out all that comes behind what was too much, if there would
// be room for it or not: a capture has no holes.
func TestRecordingLimit(t *testing.T) {
	var said bytes.Buffer
	f := pcapFlags{Pcap: filepath.Join(t.TempDir(), "x.pcapng"), PcapLimit: 200}
	err := f.record(t.Context(), streams{io.Discard, &said}, func(_ context.Context, r *recording) error {
		for _, n := range []int{60, 200, 10} {
			if k, err := r.Write(make([]byte, n)); k != n || err != nil {
				t.Errorf("wrote %d of %d (%v)", k, n, err)
			}
		}
		return nil
	})
	info, statErr := os.Stat(f.Pcap)
	if err != nil || statErr != nil {
		t.Fatal(err, statErr)
	}
	want := fmt.Sprintf("ends at %d octets, and 210 more were left out", info.Size())
	if info.Size() < 60 || info.Size() > 200 || !strings.Contains(said.String(), want) {
		t.Errorf("%d octets; said %q", info.Size(), said.String())
	}
}

// TestOctets reads numbers of octets.
func TestOctets(t *testing.T) {
	for text, want := range map[string]octets{
		"0": 0, "1000": 1000, "3K": 3 << 10, "256M": 256 << 20, "2g": 2 << 30, "8589934591G": 8589934591 << 30,
		"": -1, "K": -1, "-1": -1, "1T": -1, "1.5M": -1, "8589934592G": -1, "9223372036854775808": -1,
	} {
		var got octets
		if err := got.UnmarshalText([]byte(text)); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: got %d (%v)", text, got, err)
		}
	}
}
