package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

// A killer sends a signal to the responder's process when the table begins: everything is connected then, and is
// measured next.
type killer struct {
	t    *testing.T
	with syscall.Signal
	done bool
	out  bytes.Buffer
}

func (k *killer) Write(p []byte) (int, error) {
	k.out.Write(p)
	if !k.done && strings.Contains(k.out.String(), "p99") {
		k.done = true
		signalResponder(k.t, k.with)
	}
	return len(p), nil
}

// measure runs the command, of which the responder is to get the signal.
func (k *killer) measure(duration string) error {
	args := os.Args
	os.Args = []string{"iwarp"} // by which the other process is the command
	defer func() { os.Args = args }()
	return execute(k.t.Context(), strings.Fields("perf --op send --size 64 --tcp off --duration "+
		duration), streams{k, io.Discard})
}

// signalResponder sends a signal to a process of ours that was started to respond.
func signalResponder(t *testing.T, with syscall.Signal) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		if !bytes.Contains(line, []byte("--until-eof")) ||
			!bytes.Contains(status, []byte("\nPPid:\t"+strconv.Itoa(os.Getpid())+"\n")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err := syscall.Kill(pid, with); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("there is no responder's process")
}

// TestPerfResponderDies has the process that responds for latency be killed in the middle of a run, which the error
// says.
func TestPerfResponderDies(t *testing.T) {
	k := &killer{t: t, with: syscall.SIGKILL}
	err := k.measure("10ms")
	if err == nil || !strings.HasPrefix(err.Error(), "perf: the server's process ended: signal: killed: ") ||
		statusOf(t.Context(), err) != statusFailed {
		t.Errorf("%v\n%s", err, k.out.String())
	}
}

// TestPerfResponderHearsFirst: of a ^C, which goes to both processes, the one that responds may hear first. That is an
// interrupt of the command all the same.
func TestPerfResponderHearsFirst(t *testing.T) {
	k := &killer{t: t, with: syscall.SIGINT}
	err := k.measure("1h") // the interrupt ends it
	if !errors.As(err, new(*perf.InterruptedError)) || statusOf(t.Context(), err) != statusFine {
		t.Errorf("%v\n%s", err, k.out.String())
	}
	if err = join(err, errRecording); statusOf(t.Context(), err) != statusFailed {
		t.Errorf("without its recording: %v", err)
	}
}
