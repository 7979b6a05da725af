package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/manual"
	"github.com/goiwarp/iwarp/internal/wording"
)

// completionCmd prints what a shell completes command lines by.
type completionCmd struct {
	Shell string `arg:"" enum:"${shells}" help:"${enum}."`
}

// Help is what --help adds.
func (*completionCmd) Help() string {
	return `For bash: "source <(iwarp completion bash)" in ~/.bashrc. For zsh: "source <(iwarp completion zsh)" in ~/.zshrc, after
compinit. For fish: "iwarp completion fish >~/.config/fish/completions/iwarp.fish".`
}

// Run prints the script.
func (c *completionCmd) Run(parser *kong.Kong, std streams) error {
	return manual.Of(parser.Model).Complete(std.out, c.Shell)
}

// manCmd makes man pages.
type manCmd struct {
	Command string `arg:"" optional:"" complete:"commands" help:"The command to print the page of. Without one, that of all."`
	Dir     string `placeholder:"DIR" help:"Write all pages into this directory, in place of printing one."`
}

// Run prints a page, or writes all.
func (c *manCmd) Run(parser *kong.Kong, std streams) error {
	tool := manual.Of(parser.Model)
	if c.Dir != "" && c.Command != "" {
		return usage("man: --dir: all pages are written: leave the command out")
	}
	if c.Dir != "" {
		return writePages(tool, c.Dir)
	}
	if err := makePage(tool, c.Command, std.out.Write); err != nil {
		return usage("man: %w", err)
	}
	return nil
}

// writePages writes the page of each command, and that of all.
func writePages(tool *manual.Tool, dir string) error {
	for _, name := range append([]string{""}, tool.Commands()...) {
		file := filepath.Join(dir, "iwarp")
		if name != "" {
			file += "-" + name
		}
		if err := makePage(tool, name, func(b []byte) (int, error) {
			return len(b), writeWhole(file+".1", b)
		}); err != nil {
			return fmt.Errorf("man: --dir: %w%s", err, wording.If(errors.Is(err, fs.ErrNotExist), ": make the directory first", ""))
		}
	}
	return nil
}

// writeWhole writes a file, or no part of it.
func writeWhole(path string, b []byte) error {
	o, err := openPart(path, 0o644)
	if err != nil {
		return err
	}
	return o.write(func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// makePage makes a page, and hands it over as a whole.
func makePage(tool *manual.Tool, name string, write func([]byte) (int, error)) error {
	var b bytes.Buffer
	e := editionOf(built())
	if e.Date == "" {
		e.Date = compiled()
	}
	if err := tool.Page(&b, name, e); err != nil {
		return err
	}
	_, err := write(b.Bytes())
	return err
}

// compiled is the date of the program's file: a page has a date, also where the build does not know its commit.
func compiled() string {
	file, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format(time.DateOnly)
}

// pseudoVersion is one that was made from a commit, with its date in it, as go install makes it.
var pseudoVersion = regexp.MustCompile(`[-.]([0-9]{4})([0-9]{2})([0-9]{2})[0-9]{6}-[0-9a-f]{12}(\+|$)`)

// editionOf is that of a build, as far as that knows. The date is the commit's, so that the same commit gives the same
// pages.
func editionOf(info *debug.BuildInfo) manual.Edition {
	e := manual.Edition{Heading: "exit status", After: exitStatuses, Version: versionName(info), Examples: examples()}
	if v := pseudoVersion.FindStringSubmatch(info.Main.Version); v != nil {
		e.Date = strings.Join(v[1:4], "-")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			e.Date, _, _ = strings.Cut(s.Value, "T")
		}
	}
	return e
}
