package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// greedy returns the capture of a startup whose Reply has an ORD above the Request's IRD.
func greedy(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{})
	testrig.Must(t, err)
	f, err := w.Open(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"), time.Unix(0, 0))
	testrig.Must(t, err)
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		e := mpa.Enhanced{IRD: 4, ORD: 4 + mpa.Depth(d)}
		b := mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true, Rev: 2,
			PrivateData: mpa.AppendEnhanced(nil, &e)})
		testrig.Must(t, f.Send(capture.Dir(d), time.Unix(0, 0), b))
	}
	testrig.Must(t, w.Flush())
	return file.Bytes()
}

// TestDecodeStatus has a finding of severity error be the exit status.
func TestDecodeStatus(t *testing.T) {
	name := filepath.Join(t.TempDir(), "greedy.pcapng")
	testrig.Must(t, os.WriteFile(name, greedy(t), 0o600))
	for _, flag := range []string{"-v", "-x", "--json"} {
		var out, errs bytes.Buffer
		if status := run([]string{"decode", flag, name}, streams{&out, &errs}); status != 1 {
			t.Errorf("%s: status %d", flag, status)
		}
		if !strings.Contains(out.String(), "reply-ord-above-ird") ||
			errs.String() != "iwarp: decode: findings of severity error: 1\n" {
			t.Errorf("%s: %s%s", flag, &out, &errs)
		}
	}
	var out, errs bytes.Buffer
	if status := run([]string{"decode", "--filter", "10.0.0.3", name}, streams{&out, &errs}); status != statusUsage {
		t.Errorf("filtered: status %d, %s%s", status, &out, &errs)
	}
}

// TestDecodePort has a connection that is no iWARP, on a port that is said to be: it is
// told what the port serves, and how many bytes of it were not decoded.
func TestDecodePort(t *testing.T) {
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{})
	testrig.Must(t, err)
	f, err := w.Open(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:4791"), time.Unix(0, 0))
	testrig.Must(t, err)
	for d, text := range []string{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"} {
		testrig.Must(t, f.Send(capture.Dir(d), time.Unix(0, 0), []byte(text)))
	}
	testrig.Must(t, w.Flush())
	name := filepath.Join(t.TempDir(), "http.pcapng")
	testrig.Must(t, os.WriteFile(name, file.Bytes(), 0o600))
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, statusFailed, "0 of them iWARP"},
		{nil, statusFailed, "no iWARP found: if you know its port, give --port"},
		{[]string{"--port", "4792"}, statusUsage, "--port: no connection to 4792 in the capture"},
		{[]string{"--port", "7,9"}, statusUsage, "--port: no connection to 7 or 9 in the capture"},
		{[]string{"--filter", "1"}, statusUsage, "--filter: there is no connection 1: the capture has #0"},
		{[]string{"--port", "7,4791"}, statusFindings,
			"ERROR wrong-key [Q02] at 0: no startup frame, in 18 bytes: got an HTTP request"},
		{[]string{"--port", "4791"}, statusFindings, "<- NOTE not-decoded at 0: 19 bytes are not decoded"},
	} {
		var out, errs bytes.Buffer
		if status := run(append([]string{"decode", name}, c.args...), streams{&out, &errs}); status != c.status ||
			!strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%q: status %d, %s%s", c.args, status, &out, &errs)
		}
	}
}

// TestDecodeNothing: a capture of which nothing can be judged is not one in which all is fine.
func TestDecodeNothing(t *testing.T) {
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{})
	testrig.Must(t, err)
	testrig.Must(t, w.Flush())
	empty := slices.Clone(file.Bytes())
	whole, err := os.ReadFile("../../interop/testdata/captures/siw-rping.pcap")
	testrig.Must(t, err)
	for _, c := range []struct {
		file   []byte
		status int
		want   string
	}{
		{empty, statusFailed, "no TCP connection and no SCTP association in the capture"},
		{snapped(whole, 80), statusFailed, "nothing of the iWARP connections could be read: capture again with tcpdump -s 0"},
		{snapped(whole, 80), statusFailed, "nothing could be read of 1 of the iWARP connections; their findings say why"},
		{snapped(whole, 1500), statusFine, "0 errors"},
		{whole[:len(whole)-10], statusFailed, ": what is before it is shown; record again if its writer was stopped"},
		{whole[:20], statusFailed, "cut off in packet 1: record again if its writer was stopped"},
	} {
		name := filepath.Join(t.TempDir(), "c.pcap")
		testrig.Must(t, os.WriteFile(name, c.file, 0o600))
		var out, errs bytes.Buffer
		if status := run([]string{"decode", name}, streams{&out, &errs}); status != c.status ||
			!strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%q: status %d, %s%s", c.want, status, &out, &errs)
		}
	}
}

// TestDecodeForgets: a capture with more connections at once than are followed is not one in which all is fine.
func TestDecodeForgets(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.pcapng")
	file, err := os.Create(name)
	testrig.Must(t, err)
	w, err := capture.NewWriter(file, capture.WriterConfig{})
	testrig.Must(t, err)
	const more = 3
	for i := range capture.DefaultMaxConnections + more {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 40000)
		f, err := w.Open(from, netip.MustParseAddrPort("10.1.0.1:4791"), time.Time{})
		testrig.Must(t, err)
		for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
			if b := mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, Rev: 1}); i == more {
				testrig.Must(t, f.Send(capture.Dir(d), time.Time{}, b))
			}
		}
	}
	testrig.Must(t, w.Flush())
	testrig.Must(t, file.Close())
	var out, errs bytes.Buffer
	status := run([]string{"decode", name}, streams{&out, &errs})
	if status != statusFailed || !strings.Contains(errs.String(), "connections were open at once, and 3 not followed") {
		t.Errorf("status %d, %s%s", status, &out, &errs)
	}
}

// snapped returns a pcap file as it is with a snap length.
func snapped(file []byte, most uint32) []byte {
	const head, record = 24, 16
	out := slices.Clone(file[:head])
	for file = file[head:]; len(file) > 0; {
		n := binary.LittleEndian.Uint32(file[8:])
		out = binary.LittleEndian.AppendUint32(append(out, file[:8]...), min(n, most))
		out = append(out, file[12:record+min(n, most)]...)
		file = file[record+n:]
	}
	return out
}

// TestDecodeSCTP has a session over SCTP be chosen by its number, its ends, and its port.
func TestDecodeSCTP(t *testing.T) {
	const name = "../../interop/testdata/captures/sctp/iwarp-udp.pcap"
	const told = "1 SCTP association, 1 DDP session; 0 errors, 0 warnings, 0 notes"
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, statusFine, "session          enhanced, accepted; active end 127.0.0.1:51876; terminated by both ends"},
		{[]string{"--filter", "s0"}, statusFine, told},
		{[]string{"--filter", "127.0.0.1:7175"}, statusFine, told},
		{[]string{"--filter", "s1"}, statusUsage, "the capture has no session s1 over SCTP"},
		{[]string{"--filter", "0"}, statusUsage, "there is no connection 0: the capture has none"},
		{[]string{"--port", "7175", "--json"}, statusFine, `"network":"sctp","connection":0`},
	} {
		var out, errs bytes.Buffer
		if status := run(append([]string{"decode", name}, c.args...), streams{&out, &errs}); status != c.status ||
			!strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%q: status %d, %s%s", c.args, status, &out, &errs)
		}
	}
}

// TestDecodeLive has a capture come slowly: what is known of it is there before it goes
// on, and an interrupt brings out the summaries.
func TestDecodeLive(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	from, feed := io.Pipe()
	defer feed.Close()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		c := decodeCmd{File: "-"}
		std := streams{out: out}
		done <- c.decode(readingFile(ctx, from, std), std, filter{})
		out.Close()
	}()
	if _, err := feed.Write(greedy(t)); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for b := make([]byte, 4096); !bytes.Contains(text, []byte("reply-ord-above-ird")); {
		n, err := read.Read(b)
		if err != nil {
			t.Fatalf("%v after %s", err, text)
		}
		text = append(text, b[:n]...)
	}
	if bytes.Contains(text, []byte("summary")) {
		t.Errorf("a summary before the end: %s", text)
	}
	interrupt()
	rest, err := io.ReadAll(read)
	if err != nil || !bytes.Contains(rest, []byte("summary of #0")) {
		t.Errorf("%s (%v)", rest, err)
	}
	if err := <-done; err == nil {
		t.Error("no error for the finding")
	}
}

// TestDecodeOptions has options that do not go together.
func TestDecodeOptions(t *testing.T) {
	for line, want := range map[string]string{
		"decode":                            "decode: name a capture, - for standard input, or an interface: -i IFACE",
		"decode -i lo x.pcap":               "decode: --interface: what passes lo is captured: leave x.pcap out",
		"decode x.pcap --duration 1s":       "decode: --duration: it needs an interface: -i IFACE",
		"decode -i lo --duration -1s":       "decode: --duration: -1s is no time to wait",
		"decode x --stats --json":           "decode: --stats: it has no form in JSON: leave --json out",
		"decode x --json --export -":        "decode: --export: standard output cannot have --json too: name a file for one of them",
		"decode x --stats -v":               "decode: --stats: no FPDU is printed with it: leave -v and -x out",
		"decode x --stats --export -":       "decode: --export: standard output cannot have --stats too: name a file",
		"decode x --html -":                 "decode: --html: it is not written to standard output: name a file",
		"decode x --trace -":                "decode: --trace: it is not written to standard output: name a file",
		"decode x --html y --trace ./y":     "decode: --html: y is written by another option too: name another file",
		"decode x --trace y --export y":     "decode: --trace: y is written by another option too: name another file",
		"decode x --ring 2M":                "decode: --ring and --caught: they need a severity: --trigger error",
		"decode x --trigger note --ring 1K": "decode: --ring: it takes 1M at least",
		"decode x --trigger fatal":          "decode: --trigger: ",
		"decode ../../interop/testdata/captures/siw-rping.pcap --trigger note --caught /no/dir": "decode: --caught: there is no directory /no",
		"decode -i lo --duration second": "--duration",
	} {
		var out, errs bytes.Buffer
		status := run(strings.Fields(line), streams{&out, &errs})
		if status == statusFine || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d, %s%s", line, status, &out, &errs)
		}
	}
}

// TestDecodeKeepsStandardInput does not write over the file that standard input is.
func TestDecodeKeepsStandardInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "capture.pcap")
	want, err := os.ReadFile("../../interop/testdata/captures/siw-rping.pcap")
	testrig.Must(t, err)
	testrig.Must(t, os.WriteFile(name, want, 0o600))
	in, err := os.Open(name)
	testrig.Must(t, err)
	defer in.Close()
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before }()
	var out, errs bytes.Buffer
	status := run([]string{"decode", "-", "--export", name}, streams{&out, &errs})
	if status != statusUsage || !strings.Contains(errs.String(), "is the file that is read: name another") {
		t.Errorf("status %d: %s", status, &errs)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the capture is another: %v", err)
	}
}

// TestDecodeWhere prints what an expression chooses, and no summary.
func TestDecodeWhere(t *testing.T) {
	const file = "../../interop/testdata/captures/siw-rping.pcap"
	for expr, want := range map[string]int{"op=read-request": 6, "op = write and bytes > 0": 3, "latency>1ms": 1, "finding>note": 0} {
		var out, errs bytes.Buffer
		status := run([]string{"decode", file, "--where", expr}, streams{&out, &errs})
		lines := strings.Count(out.String(), "\n") - 1 // with the totals
		if want > 0 {
			want++ // with the connection
		}
		if status != statusFine || lines != want || strings.Contains(out.String(), "summary") {
			t.Errorf("%s: status %d, %d lines, want %d\n%s%s", expr, status, lines, want, &out, &errs)
		}
	}
	var out, errs bytes.Buffer
	want := `iwarp: decode: --where: there is no field "size": op, stag, msn, bytes, latency, finding (column 1)` + "\n"
	if status := run([]string{"decode", file, "--where", "size>4"}, streams{&out, &errs}); status != statusUsage || errs.String() != want {
		t.Errorf("status %d: %s", status, &errs)
	}
}

// TestDecodeStats sums up, all or what an expression chooses.
func TestDecodeStats(t *testing.T) {
	args := []string{"decode", "../../interop/testdata/captures/siw-rping.pcap", "--stats"}
	for _, c := range []struct {
		where string
		reads bool
	}{{"bytes>0", true}, {"op=write", false}} {
		var out, errs bytes.Buffer
		status := run(append(args, "--where", c.where), streams{&out, &errs})
		if status != statusFine || !strings.HasPrefix(out.String(), "throughput") ||
			strings.Contains(out.String(), "Reads ") != c.reads || !strings.Contains(out.String(), "Writes          3 messages") {
			t.Errorf("%s: status %d\n%s%s", c.where, status, &out, &errs)
		}
	}
}
