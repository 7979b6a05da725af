//go:build linux && interposer

package programs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const (
	diskName = "iqn.2026-11.test.iwarp:disk"
	hostName = "iqn.2026-11.test.iwarp:host"
	nextName = "iqn.2026-11.test.iwarp:next" // of a second host, which some tests take
	qemuName = "iqn.2008-11.org.linux-kvm"   // as QEMU calls itself
	diskSize = 64 << 20
)

// A diskRun is a program that uses a disk of tgt's over iSER. HOST and NEXT stand for the names of initiators, and URL
// for the disk.
type diskRun struct {
	pkg      string
	words    []string
	verified string
	says     string
}

var diskRuns = []diskRun{
	{"libiscsi-bin", []string{"iscsi-inq", "-i", "HOST", "URL"}, completed, "VIRTUAL-DISK"},
	{"libiscsi-bin", []string{"iscsi-readcapacity16", "-i", "HOST", "URL"}, completed,
		fmt.Sprint("Total size:", diskSize)},
	{"libiscsi-bin", []string{"iscsi-perf", "-i", "HOST", "-t", "3", "URL"}, rate, "finished."},
	{"qemu-utils", []string{"qemu-io", "-f", "raw", "-c", "write -P 0x5a 0 256k", "-c", "read -P 0x5a 0 256k", "-c",
		"read -P 0 256k 64k", "URL"}, compared, "read 65536/65536"},
	{"qemu-utils", []string{"qemu-io", "-f", "raw", "-c", "aio_write -P 0xa5 1M 128k", "-c", "aio_write -P 0xb6 2M 4k",
		"-c", "aio_flush", "-c", "read -P 0xa5 1M 128k", "-c", "read -P 0xb6 2M 4k", "URL"},
		compared, "read 4096/4096"},
}

// suites are those of libiscsi's own tests that a disk of tgt's passes over iSCSI and over iSER alike.
// docs/dev/programs.md says what is with the others.
var suites = strings.Fields("Read6 Read12 Read16 Write12 Write16 WriteVerify10 WriteVerify12 WriteVerify16 Verify10 Verify12 Verify16 " +
	"OrWrite Prefetch10 Prefetch16 Mandatory ReadCapacity10 ReadCapacity16 StartStopUnit TestUnitReady ReportSupportedOpcodes NoMedia Unmap Sanitize " +
	"Reserve6.Simple ProutPreempt ProutReserve.Simple ProutReserve.AccessEA ProutReserve.AccessWE ProutReserve.AccessEARO ProutReserve.AccessWERO " +
	"ProutReserve.AccessEAAR ProutReserve.AccessWEAR ProutReserve.OwnershipEAAR ProutReserve.OwnershipWEAR")

// TestDisks has tgt serve a disk over iSER, to libiscsi's programs and QEMU. tgt cannot be told another port for iSER
// than 3260 of all addresses: its parser refuses each.
func TestDisks(t *testing.T) {
	l := built(t)
	needs(t, "tgtd", "tgtadm", "iscsi-inq", "iscsi-test-cu", "qemu-io")
	all := diskRuns
	for _, suite := range suites {
		all = append(all, diskRun{"libiscsi-bin", []string{"iscsi-test-cu", "-i", "HOST", "-I", "NEXT", "-d",
			"--test=ALL." + suite, "URL"}, compared, "passed\n"})
	}
	var results []result
	for i, r := range all {
		line := strings.Join(replaced(r.words, "HOST", "NAME", "NEXT", "NAME2", "URL", "iser://IP/IQN/1"), " ")
		run := func(t *testing.T) { r.run(t, l) }
		// after the first of the suites, which are one program, the target alone writes a capture
		if i > len(diskRuns) {
			r.words = append([]string{pcapVariable + "="}, r.words...)
			results = append(results, ran(t, line, version(r.pkg), r.verified,
				func(t *testing.T) { capturedWith(t, "the target", wantedCaptures{connected: 1, fails: true}, run) }))
			continue
		}
		results = append(results, ran(t, line, version(r.pkg), r.verified, run))
		capturedWith(t, line, wantedCaptures{connected: 2, fails: i == len(diskRuns)}, run)
	}
	t.Run("what a connection had is freed", func(t *testing.T) { wantFreed(t, l) })
	wantResults(t, "TestDisks", results)
}

// wantFreed wants tgt to free a connection that is over, which it does at RoCE's RDMA_CM_EVENT_TIMEWAIT_EXIT and never
// on an iWARP device.
func wantFreed(t *testing.T, l Library) {
	url, daemon := serveDisk(t, l)
	defer daemon.kill()
	startWords(t, l, nil, "iscsi-inq", "-i", hostName, url).await(t)
	for !strings.Contains(daemon.out.String(), "iser_cm_timewait_exit") {
		select {
		case <-daemon.done:
			t.Fatalf("tgtd has ended: %v\n%s", daemon.err, daemon.out.String())
		case <-t.Context().Done():
			t.Fatalf("a connection is still there\n%s", daemon.out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// hasty is what tgt says, and ends the connection, when it sees the first command before the completion of its answer
// to the login, which the initiator has already.
const hasty = "non-login pdu during login phase"

// freed reports whether libiscsi has crashed. Its thread for events asks for the next one in memory that another thread
// has freed, in one run of twelve or so: the event channel that it gives to rdma_get_cm_event is text of the address.
func freed(p *process) bool {
	signal := p.ProcessState.Sys().(syscall.WaitStatus).Signal()
	return strings.HasPrefix(filepath.Base(p.Path), "iscsi-") &&
		(signal == syscall.SIGSEGV || signal == syscall.SIGABRT && brokenHeap.MatchString(p.out.String()))
}

// brokenHeap is what glibc says of memory that is freed twice, or written to after that.
var brokenHeap = regexp.MustCompile(`free\(\)|malloc|double free|corrupt`)

// run uses a disk of its own, and another where tgt was hasty or, three times at most, libiscsi has crashed.
func (r *diskRun) run(t *testing.T, l Library) {
	crashes := 0
	for range 10 {
		url, daemon := serveDisk(t, l)
		p := startWords(t, l, nil, replaced(r.words, "HOST", hostName, "NEXT", nextName, "URL", url)...)
		p.await(t)
		daemon.kill()
		if freed(p) {
			crashes++
		}
		if strings.Contains(daemon.out.String(), hasty) || freed(p) && crashes <= 3 {
			discardCaptures(t)
			continue
		}
		p.awaitSuccess(t)
		if out := p.out.String(); !strings.Contains(out, r.says) || strings.Contains(out, "FAILED") {
			t.Errorf("%s, which does not say %q\ntgtd: %s", out, r.says, daemon.out.String())
		}
		return
	}
	t.Error("tgt was hasty, or libiscsi crashed, each time")
}

// ran runs a program, and returns what comes of it.
func ran(t *testing.T, line, pkg, verified string, run func(*testing.T)) result {
	r := result{Program: line, Package: pkg, Outcome: "failed", Data: verified}
	if t.Run(line, run) {
		r.Outcome = "runs"
	}
	return r
}

func replaced(words []string, pairs ...string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.NewReplacer(pairs...).Replace(w)
	}
	return out
}

// serveDisk has a tgtd of its own serve an empty disk, and returns where it is.
func serveDisk(t *testing.T, l Library) (url string, daemon *process) {
	t.Helper()
	const iserPort = "3260"
	ln, err := net.Listen("tcp", ":"+iserPort)
	if err != nil {
		testrig.Lacks(t, fmt.Sprintf("tgt serves iSER on port %s only: %v", iserPort, err))
	}
	_ = ln.Close()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, diskSize); err != nil {
		t.Fatal(err)
	}
	control := fmt.Sprint(os.Getpid() % 0x8000) // a number that names a socket of the file system
	daemon = startWords(t, l, nil, "tgtd", "-f", "-C", control, "--iscsi", "portal=127.0.0.1:"+freePort(t))
	adm := func(words ...string) error {
		return run(exec.CommandContext(t.Context(), "tgtadm", append([]string{"-C", control}, words...)...))
	}
	for adm("--mode", "sys", "--op", "show") != nil {
		select {
		case <-daemon.done:
			t.Fatalf("tgtd has ended: %v\n%s", daemon.err, daemon.out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, words := range []string{
		"--mode target --op new --tid 1 -T " + diskName,
		"--mode logicalunit --op new --tid 1 --lun 1 -b " + disk,
		"--mode target --op bind --tid 1 -I ALL",
		"--mode target --op bind --tid 1 -Q " + hostName,
		"--mode target --op bind --tid 1 -Q " + nextName,
		"--mode target --op bind --tid 1 -Q " + qemuName,
	} {
		if err := adm(strings.Fields("--lld iser " + words)...); err != nil {
			t.Fatalf("%s: %v\n%s", words, err, daemon.out.String())
		}
	}
	return "iser://" + net.JoinHostPort(host(t, true), iserPort) + "/" + diskName + "/1", daemon
}
