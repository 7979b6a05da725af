package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/mpa"
)

// test runs the cases and reports on them. The error says that some failed.
func (c *conformCmd) test(ctx context.Context, std streams, opts conform.Options) error {
	printer := conform.NewPrinter(std.out, c.Verbose)
	var results []conform.Result
	var failed error // to print
	sum, err := conform.Run(ctx, opts, func(r *conform.Result) {
		results = append(results, *r)
		if !c.JSON {
			printer.Result(r)
		} else if err := conform.WriteJSON(std.out, r); err != nil && failed == nil {
			failed = err
		}
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(std.out).Encode(&sum)
	} else {
		printer.Summary(&sum)
	}
	return errors.Join(err, c.write(opts, results), verdict(&sum))
}

func verdict(sum *conform.Summary) error {
	switch {
	case sum.Stopped != "":
		return fmt.Errorf("conform: %s: %v", sum.Stopped, sum)
	case sum.Failed > 0:
		return fmt.Errorf("conform: %d failed", sum.Failed)
	}
	return nil
}

// write writes the files that were asked for.
func (c *conformCmd) write(opts conform.Options, results []conform.Result) error {
	title := c.Title
	if title == "" {
		dialect, _ := cmp.Or(opts.Dialect, mpa.DialectRFC6581).MarshalText()
		title = fmt.Sprintf("%v, %s", opts.Role, dialect)
	}
	return errors.Join(
		toFile(c.JUnit, func(w io.Writer) error {
			return conform.WriteJUnit(w, "iwarp conform: "+strings.ToLower(title), results)
		}),
		toFile(c.Markdown, (&conform.Report{Title: title, Results: results}).WriteMarkdown),
	)
}

// toFile writes a file, unless the path is empty.
func toFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
