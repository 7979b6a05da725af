package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/manual"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// manualOf runs the command, and returns what it prints.
func manualOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(args, streams{&out, &errs}); status != statusFine {
		t.Fatalf("iwarp %v: status %d: %s", args, status, errs.Bytes())
	}
	return out.String()
}

// defined is the command's model, of which pages and completion are made.
func defined(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := newParser(t.Context(), streams{&bytes.Buffer{}, &bytes.Buffer{}})
	testrig.Must(t, err)
	return parser.Model
}

// TestManual: each command has a page, and each option of it stands there, and in the completion of every shell.
func TestManual(t *testing.T) {
	whole, scripts := manualOf(t, "man"), map[string]string{}
	for _, shell := range manual.Shells() {
		scripts[shell] = manualOf(t, "completion", shell)
	}
	for _, c := range defined(t).Children {
		if !strings.Contains(whole, `iwarp\-`+c.Name) {
			t.Errorf("the page of all does not name %s", c.Name)
		}
		page := manualOf(t, "man", c.Name)
		for _, f := range c.Flags {
			if f.Hidden {
				continue
			}
			if name := strings.ReplaceAll("--"+f.Name, "-", `\-`); !strings.Contains(page, name) {
				t.Errorf("the page of %s has no %s", c.Name, name)
			}
			for shell, script := range scripts {
				want := "--" + f.Name
				if shell == "fish" {
					want = "-l " + f.Name
				}
				if !strings.Contains(script, want) {
					t.Errorf("%s has no %s of %s", shell, want, c.Name)
				}
			}
		}
	}
}

// TestManualPages: the pages are written as files, and a reader of man pages finds no fault with them.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	manualOf(t, "man", "--dir", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	testrig.Must(t, err)
	if want := len(defined(t).Children) + 1; len(pages) != want {
		t.Errorf("%d pages, want %d", len(pages), want)
	}
	lint, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not there to judge them")
	}
	if out, err := exec.CommandContext(t.Context(), lint, append([]string{"-Tlint", "-W", "error"}, pages...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCompletion: each shell that is there reads its script, and bash completes by it.
func TestCompletion(t *testing.T) {
	for _, shell := range manual.Shells() {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell + " is not there to read it")
			}
			cmd := exec.CommandContext(t.Context(), program, "-n")
			cmd.Stdin = strings.NewReader(manualOf(t, "completion", shell))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestBashCompletes: commands, options, the values of an option, and of those what begins with what is there.
func TestBashCompletes(t *testing.T) {
	program, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not there")
	}
	script := manualOf(t, "completion", "bash")
	for _, c := range []struct{ line, want string }{
		{"iwarp dec", "decode"},
		{"iwarp perf --post", "--post-list"},
		{"iwarp perf --network sctp:k", "sctp:kernel"},
		{"iwarp completion f", "fish"},
		{"iwarp help con", "conform"},
		{"iwarp man vers", "version"},
	} {
		words := strings.Fields(c.line)
		cmd := exec.CommandContext(t.Context(), program, "-c",
			script+"\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _iwarp; echo \"${COMPREPLY[@]}\"", "bash")
		cmd.Args = append(cmd.Args, words...)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || c.want != "" && got != c.want {
			t.Errorf("%q completes to %q (%v), want %q", c.line, got, err, c.want)
		}
	}
}
