package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/manual"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
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
		lacksTool(t, "mandoc")
	}
	if out, err := exec.CommandContext(t.Context(), lint,
		append([]string{"-Tlint", "-W", "all"}, pages...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestManualDate has pages have the date of the commit that the command was built from, where the build knows it.
func TestManualDate(t *testing.T) {
	stamped := debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-02-03T04:05:06Z"}}}
	stamped.Main.Version = "v0.0.0-20260101000000-0123456789ab+dirty"
	for version, want := range map[string]string{"v0.0.0-20261127230545-0123456789ab": "2026-11-27",
		"v1.2.4-0.20261127230545-0123456789ab": "2026-11-27", "v1.2.3": "", "(devel)": ""} {
		info := new(debug.BuildInfo)
		info.Main.Version = version
		if got := editionOf(info).Date; got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	if got := editionOf(&stamped).Date; got != "2026-02-03" {
		t.Errorf("got %q", got)
	}
}

// TestCompletion: each shell that is there reads its script, and bash completes by it.
func TestCompletion(t *testing.T) {
	for _, shell := range manual.Shells() {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				lacksTool(t, shell)
			}
			cmd := exec.CommandContext(t.Context(), program, "-n")
			cmd.Stdin = strings.NewReader(manualOf(t, "completion", shell))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestCompletedOps has the operations that shells complete be those that there are, one after the other in a list, for
// zsh too.
func TestCompletedOps(t *testing.T) {
	var want []string
	for op := perf.Send; ; op++ {
		if _, err := perf.ParseOp(op.String()); err != nil {
			break
		}
		want = append(want, op.String())
	}
	if list := "_sequence compadd - " + strings.Join(want, " ") + "'"; len(want) == 0 ||
		!strings.Contains(manualOf(t, "completion", "zsh"), list) {
		t.Errorf("zsh has no %q", list)
	}
}

// completed are command lines, and what the shells make of the last words: commands, options, the values of an option,
// and of those what begins with what is there.
var completed = []struct{ line, want string }{
	{"iwarp dec", "decode"},
	{"iwarp perf --post", "--post-list"},
	{"iwarp perf --network sctp:k", "sctp:kernel"},
	{"iwarp completion f", "fish"},
	{"iwarp help con", "conform"},
	{"iwarp man vers", "version"},
	{"iwarp perf --op Se", "Send"},
	{"iwarp perf --op Read,Write-", "Read,Write-Imm"},
	{"iwarp matrix --figure 2,", "2,2 2,3 2,4"},
}

// shellOf returns a shell that is there.
func shellOf(t *testing.T, name string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		lacksTool(t, name)
	}
	return program
}

// TestFishCompletes has fish complete them.
func TestFishCompletes(t *testing.T) {
	program, script := shellOf(t, "fish"), manualOf(t, "completion", "fish")
	for _, c := range completed {
		out, err := exec.CommandContext(t.Context(), program, "--no-config", "-c",
			script+"\ncomplete -C '"+c.line+"'").CombinedOutput()
		var all []string
		for line := range strings.Lines(strings.TrimSpace(string(out))) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t") // a description follows
			all = append(all, word)
		}
		if got := strings.Join(all, " "); err != nil || got != c.want {
			t.Errorf("%q completes to %q (%v), want %q", c.line, got, err, c.want)
		}
	}
}

// TestZshCompletesAtOnce has zsh find the script in its fpath, where its first call is to complete, and not only to
// define the function.
func TestZshCompletesAtOnce(t *testing.T) {
	program, dir := shellOf(t, "zsh"), t.TempDir()
	testrig.Must(t, os.WriteFile(filepath.Join(dir, "_iwarp"), []byte(manualOf(t, "completion", "zsh")), 0o600))
	const first = `fpath=($1 $fpath); autoload -U _iwarp; compdef() { }; _arguments() { print asked; state=none }; _iwarp`
	out, err := exec.CommandContext(t.Context(), program, "-f", "-c", first, "zsh", dir).CombinedOutput()
	if err != nil || string(out) != "asked\n" {
		t.Errorf("the first call: %q (%v)", out, err)
	}
}

// TestBashCompletes has bash complete them.
func TestBashCompletes(t *testing.T) {
	program, script := shellOf(t, "bash"), manualOf(t, "completion", "bash")
	for _, c := range completed {
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

// lacksTool skips a test for a program that is not there. CI's step that tries all has them.
func lacksTool(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("IWARP_ALL") != "" {
		testrig.Lacks(t, name+" is not there")
	}
	t.Skip(name + " is not there")
}
