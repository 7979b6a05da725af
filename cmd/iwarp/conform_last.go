package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/conform"
)

// A lastRun is what a later run needs to run only those cases again that failed.
type lastRun struct {
	Args   []string `json:"args"` // of the command line
	Failed []string `json:"failed"`
}

// lastFile is where the last run is kept.
func lastFile() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "iwarp", "conform-last.json"), err
}

// keep keeps a run. An error is that it cannot be run again by --rerun, no more.
func (l *lastRun) keep() error {
	file, err := lastFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// rerun runs the cases again that failed in the last run, with the arguments that it had.
func (c *conformCmd) rerun(std streams, k *kong.Context) error {
	if other := besideRerun(k); other != "" {
		return usage("conform: --rerun: it takes its peer, cases and options from the last run: leave out %s", other)
	}
	file, err := lastFile()
	if err != nil {
		return fmt.Errorf("conform: --rerun: %w: the last run is kept there: set HOME", err)
	}
	var last lastRun
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &last)
	}
	switch {
	case err != nil:
		return fmt.Errorf("conform: --rerun: no last run is known: run iwarp conform HOST first: %w", err)
	case len(last.Failed) == 0:
		_, err := fmt.Fprintln(std.out, "nothing failed in the last run")
		return err
	}
	verbose := c.Verbose
	again, err := k.Parse(last.Args) // into c
	if err != nil {
		return unparsed(err)
	}
	c.Cases, c.Verbose = exactly(last.Failed), c.Verbose || verbose
	return again.Run(k.Kong)
}

// besideRerun names an argument or option that --rerun would leave unheeded, if there is one.
func besideRerun(k *kong.Context) string {
	for _, p := range k.Path {
		switch {
		case p.Positional != nil:
			return "HOST"
		case p.Flag != nil && p.Flag.Name != "rerun" && p.Flag.Name != "verbose":
			return "--" + p.Flag.Name
		}
	}
	return ""
}

// exactly matches these IDs, and no other.
func exactly(ids []string) string {
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = regexp.QuoteMeta(id)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// shownFailures is how many failures the end of a run repeats.
const shownFailures = 20

// failures keeps the run, and repeats what failed.
func (c *conformCmd) failures(w io.Writer, report *conform.Report) {
	last := lastRun{Args: c.words, Failed: []string{}}
	var lines strings.Builder
	for i := range report.Results {
		r := &report.Results[i]
		if r.Verdict != conform.Fail {
			continue
		}
		last.Failed = append(last.Failed, r.Case.ID)
		if len(last.Failed) <= shownFailures {
			fmt.Fprintf(&lines, "\nFAILED  %s   %s (%s)\n        %s\n        expected  %s\n        got       %s\n", r.Case.ID,
				r.Case.Section, strings.Join(r.Case.Requirements, " "), r.Case.Text, r.Expected, r.Got)
		}
	}
	kept := last.keep()
	if len(last.Failed) == 0 || c.JSON {
		return
	}
	if more := len(last.Failed) - shownFailures; more > 0 {
		fmt.Fprintf(&lines, "\n%d more failed: see above\n", more)
	}
	if kept == nil {
		lines.WriteString("\nOnly these again: iwarp conform --rerun last -v\n")
	}
	fmt.Fprint(w, lines.String())
}
