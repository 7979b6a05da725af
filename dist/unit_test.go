package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestUnit has systemd judge the units, with a program that is there in place of the installed one.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("there is no systemd here: %v", err)
	}
	self, err := os.Executable()
	testrig.Must(t, err)
	for _, name := range []string{"iwarp.service", "iwarp-disk.service"} {
		judge(t, analyze, self, name)
	}
}

func judge(t *testing.T, analyze, self, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	testrig.Must(t, err)
	unit := filepath.Join(t.TempDir(), name)
	here := bytes.ReplaceAll(text, []byte("/usr/bin/iwarp "), []byte(self+" "))
	testrig.Must(t, os.WriteFile(unit, here, 0o600))
	for _, c := range []struct {
		name string
		args []string
	}{
		{"verify", []string{"verify", "--man=no", unit}},
		// of 100, where 0 is the least exposed
		{"security", []string{"security", "--offline=true", "--no-pager", "--threshold=15", unit}},
	} {
		t.Run(name+" "+c.name, func(t *testing.T) {
			said, err := exec.CommandContext(testrig.Within(t), analyze, c.args...).CombinedOutput()
			if regexp.MustCompile(`(?i)unrecognized option|unknown (option|command)`).Match(said) {
				t.Skipf("this systemd is too old: %s", said)
			}
			if err != nil {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
