//go:build linux && interposer

package programs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Each program that the tests run is run as users have it, and writing a capture: that takes connections another way
// through the library.

// pcapVariable names the capture of a program. In a test that is captured it is a directory, in which each program that
// is started has one of its own.
const pcapVariable = "IWARP_PCAP"

// captureLimit is after how many bytes a capture ends: QEMU moves all the memory of a guest.
const captureLimit = 4 << 20

// captures has the programs of the first table write captures.
func (l Library) captures(t *testing.T) {
	for _, p := range shown {
		want := wantedCaptures{connected: 2, datagrams: slices.Contains(unconnected, p)}
		p.server, p.client = quick.Replace(p.server), quick.Replace(p.client)
		capturedWith(t, p.client, want, func(t *testing.T) { p.run(t, l) })
	}
	captured(t, "one process", 1, func(t *testing.T) { l.compiled(t, "managed", pair...) })
}

// quick has perftest measure fewer messages of all sizes, of which a capture then has more sizes, and count the
// processor's clock: to measure its rate takes a third of a second for each size.
var quick = strings.NewReplacer("-a -n 100", "-a -n 5", "_lat -R", "_lat -R -C")

// captured has the programs that a test starts write captures, in which there is nothing wrong, and at least so many
// that have a connection.
func captured(t *testing.T, name string, connected int, run func(*testing.T)) {
	capturedWith(t, name, wantedCaptures{connected: connected}, run)
}

// wantedCaptures is what captures are to have.
type wantedCaptures struct {
	connected int  // how many have a connection, at least
	datagrams bool // or datagrams instead
	refused   bool // the programs ask for what is refused, with a Terminate
	fails     bool // they have requests of their ULP fail
}

func capturedWith(t *testing.T, name string, want wantedCaptures, run func(*testing.T)) {
	t.Run(name+" captured", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv(pcapVariable, dir)
		t.Setenv("IWARP_PCAP_LIMIT", "4M")
		run(t)
		if !t.Failed() && !t.Skipped() {
			want.judge(t, dir)
		}
	})
}

// bothWays runs a test of programs as users have them, and once more with captures.
func bothWays(t *testing.T, name string, connected int, run func(*testing.T)) {
	t.Run(name, run)
	captured(t, name, connected, run)
}

// captureOf returns the setting for a program that is started in a test: nothing where that is not captured. What the
// program starts writes files beside its own, if that has begun its own.
func captureOf(t *testing.T) []string {
	dir := os.Getenv(pcapVariable)
	if dir == "" {
		return nil
	}
	own, err := os.MkdirTemp(dir, "program") //nolint:usetesting // in the directory that is judged
	testrig.Must(t, err)
	return []string{pcapVariable + "=" + filepath.Join(own, "capture.pcapng")}
}

// discardCaptures drops those that a captured test has so far, of what counts for nothing: the test tries again.
func discardCaptures(t *testing.T) {
	dir := os.Getenv(pcapVariable)
	if dir == "" {
		return
	}
	all, err := os.ReadDir(dir)
	testrig.Must(t, err)
	for _, e := range all {
		testrig.Must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}

// judge decodes all captures in a directory.
func (w wantedCaptures) judge(t *testing.T, dir string) {
	t.Helper()
	with := 0
	testrig.Must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && w.judgeOne(t, name) {
			with++
		}
		return err
	}))
	if with < w.connected {
		t.Errorf("captures with a connection: %d, want %d", with, w.connected)
	}
}

// judgeOne wants nothing wrong in a capture, up to where it ends, and reports whether it has an iWARP connection, or
// what is wanted instead.
func (w wantedCaptures) judgeOne(t *testing.T, name string) bool {
	t.Helper()
	file, err := os.Open(name)
	testrig.Must(t, err)
	defer file.Close()
	info, err := file.Stat()
	testrig.Must(t, err)
	// Of several connections one may have filled the capture before the startup of another was complete, or had begun.
	const largest = 128 << 10 // of a packet
	j := &captureJudge{want: w, t: t, name: filepath.Base(name), full: info.Size() > captureLimit-largest}
	totals, err := decode.Run(file, decode.Config{}, j)
	if err != nil || info.Size() > captureLimit {
		t.Errorf("%s of %d bytes: %v", j.name, info.Size(), err)
	}
	if other := totals.Connections - totals.IWARP; other > 0 && !j.full {
		t.Errorf("%s: connections that are not iWARP: %d", j.name, other)
	}
	return totals.IWARP > 0 || w.datagrams && totals.Skipped > 0
}

// A captureJudge hears what is in a capture.
type captureJudge struct {
	decode.Ignore
	want wantedCaptures
	t    *testing.T
	name string
	full bool // the capture has ended before the program
}

func (j *captureJudge) Finding(c *decode.Connection, f *decode.Finding) {
	j.t.Helper()
	wanted := j.want.refused && f.Name == "terminate" || j.want.fails && f.Name == "ulp-failure"
	if f.Severity != decode.Note && !wanted {
		j.t.Errorf("%s: connection %d: %v %s [%s] at %d: %s",
			j.name, c.TCP.Number, f.Severity, f.Name, f.ID, f.Offset, f.Text)
	}
}

// Ended wants a connection that has not failed: the decoder counts those that a program has been refused apart.
func (j *captureJudge) Ended(c *decode.Connection) {
	j.t.Helper()
	switch failed := c.Failed(); {
	case failed == "", failed == "rejected":
	case j.full && !c.Agreed:
	case j.want.refused && failed == "terminated":
	default:
		j.t.Errorf("%s: connection %d: %s", j.name, c.TCP.Number, failed)
	}
}
