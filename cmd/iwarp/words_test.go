package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestWordsAsTheyAre has names and texts that are not UTF-8 come to the commands as they were written.
func TestWordsAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		args []string
		got  func(*cli) string
	}{
		{[]string{"cp", "v\xff", "h:"}, func(c *cli) string { return c.Cp.Paths[0] }},
		{[]string{"cat", "--out", "v\xff"}, func(c *cli) string { return c.Cat.Out }},
		{[]string{"cat", "--out=v\xff"}, func(c *cli) string { return c.Cat.Out }},
		{[]string{"serve", "--dir", "v\xff"}, func(c *cli) string { return c.Serve.Dir }},
		{[]string{"disk", "v\xff"}, func(c *cli) string { return c.Disk.Disk[0] }},
		{[]string{"disk", "--read", "u", "-ov\xff"}, func(c *cli) string { return c.Disk.Out }},
		{[]string{"run", "x", "v\xff"}, func(c *cli) string { return c.Run.Program[1] }},
		{[]string{"rping", "--private-data", "v\xff"}, func(c *cli) string { return string(c.Rping.PrivateData) }},
	} {
		if got, err := parsed(t, c.args); err != nil || c.got(got) != "v\xff" {
			t.Errorf("%q: %v: %q", c.args, err, c.got(got))
		}
	}
}

// TestEmptyNames: an empty name of a file, directory or host is a mistake, and not the current directory or this host.
func TestEmptyNames(t *testing.T) {
	for _, c := range []struct {
		args []string
		name string
	}{
		{[]string{"cp", "-r", "", "h:"}, "cp: PATH"},
		{[]string{"cp", "h:f", ""}, "cp: PATH"},
		{[]string{"cat", "", "80"}, "cat: HOST[:PORT]"},
		{[]string{"cat", "h", "--in", ""}, "cat: --in"},
		{[]string{"cat", "h", "--out="}, "cat: --out"},
		{[]string{"disk", ""}, "disk: FILE|SIZE"},
		{[]string{"disk", "--read", "h/n", "-o", ""}, "disk: --out"},
		{[]string{"probe", "", "80"}, "probe: HOST[:PORT]"},
		{[]string{"decode", ""}, "decode: FILE"},
		{[]string{"serve", "--dir", ""}, "serve: --dir"},
	} {
		var out, errs bytes.Buffer
		status := run(c.args, streams{&out, &errs})
		want := "iwarp: " + c.name + ": it is empty: give a name, or leave it out\n"
		if status != statusUsage || errs.String() != want {
			t.Errorf("%q: status %d, %q", c.args, status, errs.String())
		}
	}
	if c, err := parsed(t, []string{"run", "x", ""}); err != nil || len(c.Run.Program) != 2 {
		t.Errorf("an empty argument of a program: %v: %q", err, c.Run.Program)
	}
}

// TestListsAreText: a list that is not UTF-8 is refused, and others are as before.
func TestListsAreText(t *testing.T) {
	if _, err := parsed(t, []string{"disk", "1M", "--host", "a,v\xff"}); err == nil ||
		!strings.Contains(err.Error(), "--host: the text is not UTF-8") {
		t.Error(err)
	}
	c, err := parsed(t, []string{"disk", "1M", "64K", "--host", `a,b\,c`, "--host=d"})
	if err != nil || !slices.Equal(c.Disk.Host, []string{"a", "b,c", "d"}) ||
		!slices.Equal(c.Disk.Disk, []string{"1M", "64K"}) {
		t.Errorf("%v: %q, %q", err, c.Disk.Host, c.Disk.Disk)
	}
	if c, err := parsed(t, []string{"matrix", "--figure", "2,3"}); err != nil ||
		!slices.Equal(c.Matrix.Figure, []int{2, 3}) {
		t.Errorf("%v: %v", err, c.Matrix.Figure)
	}
}

// parsed is what the parser makes of arguments.
func parsed(t *testing.T, args []string) (*cli, error) {
	t.Helper()
	parser, err := newParser(t.Context(), streams{io.Discard, io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return parser.Model.Target.Addr().Interface().(*cli), err
}
