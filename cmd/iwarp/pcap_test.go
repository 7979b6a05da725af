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
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// An album is the connections of a capture, and all their bytes.
type album struct {
	decode.Ignore
	conns []*decode.Connection
	bytes map[*decode.Connection]*[2][]byte
	bad   error
}

func (a *album) Found(c *decode.Connection) {
	a.conns = append(a.conns, c)
	a.bytes[c] = new([2][]byte)
}

func (a *album) Startup(c *decode.Connection, s *decode.Startup) { a.add(c, s.Dir, s.Bytes) }

func (a *album) FPDU(c *decode.Connection, f *decode.FPDU) {
	a.add(c, f.Dir, f.Bytes)
	if f.Err != nil || f.CRC != decode.CRCRight {
		a.bad = fmt.Errorf("%v %v: %v", c.TCP, f.Dir, f)
	}
}

func (a *album) Missing(c *decode.Connection, m *decode.Missing) {
	a.bad = fmt.Errorf("%v %v: bytes %d to %d are missing, or in no FPDU", c.TCP, m.Dir, m.Offset, m.End)
}

func (a *album) add(c *decode.Connection, d capture.Dir, data []byte) {
	a.bytes[c][d] = append(a.bytes[c][d], data...)
}

// readAlbum reads a whole capture, in which each byte is part of a startup frame or of an
// FPDU.
func readAlbum(path string) (*album, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	a := &album{bytes: map[*decode.Connection]*[2][]byte{}}
	totals, err := decode.Run(file, decode.Config{Expect: func(*capture.Connection) bool { return true }}, a)
	if totals.Skipped > 0 {
		a.bad = fmt.Errorf("%d packets are skipped", totals.Skipped)
	}
	return a, errors.Join(err, a.bad)
}

// describe tells what each end of a connection has sent.
func describe(c *decode.Connection) (text string, err error) {
	if !c.TCP.Handshake() {
		return "", fmt.Errorf("%v: no handshake", c.TCP)
	}
	for d := range c.Halves {
		h, what := &c.Halves[d], "nothing"
		if c.Revisions[d] >= 0 {
			what = fmt.Sprintf("%s Rev %d", [2]string{"Req", "Rep"}[d], c.Revisions[d])
		}
		for op, n := range h.Ops {
			if n.Messages > 0 {
				what += fmt.Sprintf(", %d %v", n.Messages, rdmap.Opcode(op))
			}
		}
		text += fmt.Sprintf("%v %s, %v\n", capture.Dir(d), what, h.End.Reason)
	}
	return text, nil
}

// capturedCmd is the scripts' command "captured FILE [OTHER]": it prints what is in a
// capture, in which nothing may be missing. OTHER is from the other end, and has the same
// bytes.
func capturedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: captured FILE [OTHER]")
	}
	a, err := readAlbum(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, c := range a.conns {
		text, err := describe(c)
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
		if d := b.conns[i]; c.TCP.String() != d.TCP.String() || !bytes.Equal(a.bytes[c][0], b.bytes[d][0]) ||
			!bytes.Equal(a.bytes[c][1], b.bytes[d][1]) {
			ts.Fatalf("%v differs from %v of the other end", c.TCP, d.TCP)
		}
	}
}

// TestRecordingFails ends a run whose file cannot be written, and says why.
func TestRecordingFails(t *testing.T) {
	f := pcapFlags{Pcap: filepath.Join(t.TempDir(), "x.pcapng")}
	err := f.record(t.Context(), "perf", streams{io.Discard, io.Discard},
		func(ctx context.Context, r *recording) error {
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
	if err := f.record(t.Context(), "perf", streams{},
		func(context.Context, *recording) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the run's own error", err)
	}
}

// TestRecordingLimit has a limit that a buffer of the Writer's exceeds: the capture has every packet that fits, and
// nothing after the first that does not, whether there would be room for it or not: it has no holes.
func TestRecordingLimit(t *testing.T) {
	var said bytes.Buffer
	const limit = 4000
	f := pcapFlags{Pcap: filepath.Join(t.TempDir(), "x.pcapng"), PcapLimit: limit}
	err := f.record(t.Context(), "perf", streams{io.Discard, &said}, func(_ context.Context, r *recording) error {
		end := netip.MustParseAddrPort("127.0.0.1:1")
		flow, err := r.w.Open(end, end, time.Unix(0, 0))
		for _, n := range []int{1000, 1000, 1000, 1000, 1} {
			err = errors.Join(err, flow.Send(capture.Forward, time.Unix(0, 0), make([]byte, n)))
		}
		return err
	})
	info, statErr := os.Stat(f.Pcap)
	if err != nil || statErr != nil {
		t.Fatal(err, statErr)
	}
	if info.Size() < 3000 || info.Size() > limit ||
		!strings.Contains(said.String(), fmt.Sprintf("(%d bytes) by --pcap-limit: ", info.Size())) {
		t.Errorf("%d bytes; said %q", info.Size(), said.String())
	}
	if n := packetsIn(t, f.Pcap); n != 3+3 { // the handshake, and the bytes that fit
		t.Errorf("%d packets", n)
	}
}

// packetsIn returns how many packets a capture has.
func packetsIn(t *testing.T, path string) (n int) {
	t.Helper()
	file, err := os.Open(path)
	testrig.Must(t, err)
	defer file.Close()
	r, err := capture.Open(file)
	testrig.Must(t, err)
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if err != io.EOF {
		t.Error(err)
	}
	return n - 1
}
