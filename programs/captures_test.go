//go:build linux && interposer

package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// captures has programs write captures of what they send and receive, at both ends, in which iwarp decode finds nothing wrong.
// They end after 4 MiB.
func (l Library) captures(t *testing.T) {
	command := filepath.Join(t.TempDir(), "iwarp")
	if err := run(exec.CommandContext(t.Context(), "go", "build", "-o", command, "../cmd/iwarp")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("IWARP_PCAP_LIMIT", "4M")
	for _, p := range slices.Concat(pairings, directs, waiting) {
		t.Run(p.client, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("IWARP_PCAP", filepath.Join(dir, "capture.pcapng"))
			p.run(t, l)
			decoded(t, command, dir, 2)
		})
	}
	t.Run("one process", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("IWARP_PCAP", filepath.Join(dir, "capture.pcapng"))
		l.compiled(t, "managed", pair...)
		decoded(t, command, dir, 1)
	})
}

// decoded decodes the captures of a directory: those of at least so many processes.
func decoded(t *testing.T, command, dir string, processes int) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < processes {
		t.Errorf("%d captures: %v", len(files), err)
	}
	for _, f := range files {
		out, err := exec.CommandContext(t.Context(), command, "decode", filepath.Join(dir, f.Name())).CombinedOutput()
		if err != nil && cutShort(err, out) {
			err = nil
		}
		if err != nil || !strings.Contains(string(out), "start-req") {
			t.Errorf("%s: %v\n%s", f.Name(), err, out[:min(len(out), 4000)])
		}
	}
}

// wrong finds a summary with errors or warnings.
var wrong = regexp.MustCompile(`findings +([1-9][0-9]* errors?|0 errors, [1-9])`)

// cutShort reports whether decode has found something (status 1) that is neither an error nor a warning: of several connections one may have
// filled the capture before the startup of another was complete.
func cutShort(err error, out []byte) bool {
	ended, ok := errors.AsType[*exec.ExitError](err)
	return ok && ended.ExitCode() == 1 && !wrong.Match(out) && strings.Contains(string(out), "startup-open")
}
