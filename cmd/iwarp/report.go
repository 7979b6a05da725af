package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
)

// reportFlags say how a report is written.
type reportFlags struct {
	Verbose  bool   `short:"v" help:"Also print the details of what is right."`
	JSON     bool   `name:"json" help:"Print JSON."`
	JUnit    string `name:"junit" placeholder:"FILE" help:"Also write the results as JUnit XML, for a CI system."`
	Markdown string `placeholder:"FILE" help:"Also write the results as a Markdown table."`
	HTML     string `name:"html" placeholder:"FILE" help:"Also write a page of HTML: what failed with its dialogues as ladders, and all results."`
}

// reportFiles are those that were asked for, and nil otherwise.
type reportFiles struct {
	tool, title     string
	began           time.Time
	junit, markdown *output
	html            *output
	summary         *os.File
	written         bool
}

// open opens the files for a report of this title.
func (f *reportFlags) open(tool, title string) (*reportFiles, error) {
	files := &reportFiles{tool: tool, title: title, began: time.Now()}
	err := cmp.Or(besideText(tool, "junit", f.JUnit), besideText(tool, "markdown", f.Markdown), besideText(tool, "html", f.HTML))
	if err != nil {
		return nil, err
	}
	if files.junit, err = openOutput(tool, "junit", f.JUnit); err != nil {
		return nil, err
	}
	if files.markdown, err = openOutput(tool, "markdown", f.Markdown); err == nil {
		files.html, err = openOver(tool, "html", f.HTML, "a page", isPage)
	}
	if err == nil {
		files.summary, err = openSummary(tool)
	}
	if err != nil {
		files.leave()
		return nil, err
	}
	return files, nil
}

// besideText refuses a file that the text goes to, which would be lost. A pipe has both.
func besideText(tool, flag, path string) error {
	own, err := os.Stdout.Stat()
	if path == "-" || err == nil && own.Mode().IsRegular() && isStdout(path) {
		return usage("%s: --%s: it is not written to standard output, which has the text: name a file", tool, flag)
	}
	return nil
}

// write prints a report, and writes the files.
func (f *reportFlags) write(std streams, files *reportFiles, r *report.Documented) error {
	r.Version, r.Began = versionName(built()), files.began
	if f.JSON {
		return join(r.WriteJSON(std.out), files.write(r))
	}
	return join(r.WriteText(folded(std.out), f.Verbose), files.write(r))
}

// stamp says what the report is of.
func (f *reportFiles) stamp() report.Stamp { return report.StampOf(versionName(built()), f.began) }

func (f *reportFiles) write(r report.Report) error {
	f.written = true
	return join(f.junit.write(r.WriteJUnit), f.markdown.write(r.WriteMarkdown), f.html.write(r.WriteHTML), f.summarize(r))
}

// openSummary opens the page that GitHub Actions shows of a step, if this is one.
func openSummary(tool string) (*os.File, error) {
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s: GITHUB_STEP_SUMMARY: %w: correct the variable, or unset it", tool, err)
	}
	return file, nil
}

// summarize appends the table to that page.
func (f *reportFiles) summarize(r report.Report) error {
	if f.summary == nil {
		return nil
	}
	if err := join(r.WriteMarkdown(f.summary), f.summary.Close()); err != nil {
		return fmt.Errorf("%s: GITHUB_STEP_SUMMARY: %w", f.tool, err)
	}
	return nil
}

// finish is called when the run has ended with err, which it returns. The files say what has kept the run from coming to
// a report; those of a run that was asked for in the wrong way stay as they are.
func (f *reportFiles) finish(ctx context.Context, err error) error {
	switch {
	case f.written:
		return err
	case err == nil, statusOf(ctx, err) == statusUsage:
		f.leave()
		return err
	}
	d := &report.Document{Tool: f.tool, Title: f.title, Stopped: oneLine(err),
		Version: versionName(built()), Began: f.began}
	if ctx.Err() != nil {
		d.Stopped, d.Interrupted = "interrupted", true
	}
	return join(err, f.write(report.Of(d, nil)))
}

// leave closes the files as they were before the run.
func (f *reportFiles) leave() {
	f.junit.leave()
	f.markdown.leave()
	f.html.leave()
	if f.summary != nil {
		_ = f.summary.Close()
	}
}

// printColumns prints a line, if there is one, and rows of cells that stand below each other.
func printColumns(w io.Writer, head string, rows [][]string) error {
	d := report.Document{Sections: []report.Section{{Head: head}, {Columns: report.Columns{Rows: rows}}}}
	return d.WriteText(w, false)
}
