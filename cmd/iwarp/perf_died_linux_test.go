package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A killer kills the responder's process when the table begins: everything is connected then, and is measured next.
type killer struct {
	t    *testing.T
	done bool
	out  bytes.Buffer
}

func (k *killer) Write(p []byte) (int, error) {
	k.out.Write(p)
	if !k.done && strings.Contains(k.out.String(), "#bytes") {
		k.done = true
		killResponder(k.t)
	}
	return len(p), nil
}

// killResponder kills a process of ours that was started to respond.
func killResponder(t *testing.T) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		if !bytes.Contains(line, []byte("--until-eof")) || !bytes.Contains(status, []byte("\nPPid:\t"+strconv.Itoa(os.Getpid())+"\n")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("there is no responder's process")
}

// TestPerfResponderDies has the process that responds for latency be killed in the middle of a run, which the error says.
func TestPerfResponderDies(t *testing.T) {
	args := os.Args
	os.Args = []string{"iwarp"} // by which the other process is the command
	defer func() { os.Args = args }()
	k := &killer{t: t}
	err := execute(t.Context(), strings.Fields("perf --op send --size 64 --duration 10ms --tcp off"), streams{k, io.Discard})
	if err == nil || !strings.HasPrefix(err.Error(), "perf: the responder's process ended: signal: killed: ") || statusOf(t.Context(), err) != statusFailed {
		t.Errorf("%v\n%s", err, k.out.String())
	}
}
