package main

import (
	"context"
	"io"

	"github.com/goiwarp/iwarp/internal/report"
)

// reportFlags say how a report is written.
type reportFlags struct {
	Verbose  bool   `short:"v" help:"Print the details of what is right, too."`
	JSON     bool   `name:"json" help:"Print JSON."`
	JUnit    string `name:"junit" placeholder:"FILE" help:"Write the results for a CI system, too."`
	Markdown string `placeholder:"FILE" help:"Write a table of the results, too."`
}

// reportFiles are those that were asked for, and nil otherwise.
type reportFiles struct {
	tool, title     string
	junit, markdown *output
	written         bool
}

// open opens the files for a report of this title.
func (f *reportFlags) open(tool, title string) (*reportFiles, error) {
	files := &reportFiles{tool: tool, title: title}
	var err error
	if files.junit, err = openOutput(tool, "junit", f.JUnit); err != nil {
		return nil, err
	}
	if files.markdown, err = openOutput(tool, "markdown", f.Markdown); err != nil {
		files.junit.leave()
		return nil, err
	}
	return files, nil
}

// write prints a report, and writes the files.
func (f *reportFlags) write(std streams, files *reportFiles, r report.Report) error {
	if f.JSON {
		return join(r.WriteJSON(std.out), files.write(r))
	}
	return join(r.WriteText(std.out, f.Verbose), files.write(r))
}

func (f *reportFiles) write(r report.Report) error {
	f.written = true
	return join(f.junit.write(r.WriteJUnit), f.markdown.write(r.WriteMarkdown))
}

// finish is called when the run has ended with err, which it returns. The files say what has kept the run from coming to
// a report; those of a run that was asked for in the wrong way stay as they are.
func (f *reportFiles) finish(ctx context.Context, err error) error {
	switch {
	case f.written:
		return err
	case err == nil, statusOf(ctx, err) == statusUsage:
		f.junit.leave()
		f.markdown.leave()
		return err
	}
	d := &report.Document{Tool: f.tool, Title: f.title, Stopped: oneLine(err)}
	if ctx.Err() != nil {
		d.Stopped, d.Interrupted = "interrupted", true
	}
	return join(err, f.write(report.Of(d, nil)))
}

// printColumns prints a line, if there is one, and rows of cells that stand below each other.
func printColumns(w io.Writer, head string, rows [][]string) error {
	d := report.Document{Sections: []report.Section{{Head: head}, {Columns: report.Columns{Rows: rows}}}}
	return d.WriteText(w, false)
}
