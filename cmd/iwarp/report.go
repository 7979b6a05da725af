package main

import (
	"errors"
	"io"
	"os"

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
type reportFiles struct{ junit, markdown *os.File }

// open makes the files, so that one that cannot be written is known before the run.
func (f *reportFlags) open() (files reportFiles, err error) {
	if files.junit, err = create(f.JUnit); err != nil {
		return files, err
	}
	files.markdown, err = create(f.Markdown)
	return files, err
}

// create makes a file, unless the path is empty.
func create(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	return os.Create(path)
}

// write prints a report, and writes the files.
func (f *reportFlags) write(std streams, files reportFiles, r report.Report) error {
	if f.JSON {
		return errors.Join(r.WriteJSON(std.out), files.write(r))
	}
	return errors.Join(r.WriteText(std.out, f.Verbose), files.write(r))
}

func (f reportFiles) write(r report.Report) error {
	return errors.Join(toFile(f.junit, r.WriteJUnit), toFile(f.markdown, r.WriteMarkdown))
}

// toFile writes and closes a file, unless it is nil.
func toFile(f *os.File, write func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	return errors.Join(write(f), f.Close())
}
