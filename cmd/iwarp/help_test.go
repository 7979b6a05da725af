package main

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestHelpTellsStatuses: the help of every command, and of all together, tells of the exit statuses.
func TestHelpTellsStatuses(t *testing.T) {
	helps := [][]string{{"--help"}}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
		if _, command := field.Tag.Lookup("cmd"); command {
			helps = append(helps, []string{cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)), "--help"})
		}
	}
	if len(helps) < 10 {
		t.Fatalf("%q are not all commands", helps)
	}
	for _, args := range helps {
		var out, errs bytes.Buffer
		status := run(args, streams{&out, &errs})
		if text := strings.Join(strings.Fields(out.String()), " "); status != statusFine ||
			!strings.Contains(text, exitStatuses) {
			t.Errorf("iwarp %v: status %d: %s%s", args, status, out.Bytes(), errs.Bytes())
		}
	}
}

// TestAlone: a command in a parser of its own says of itself what it says among all, and those that tell of others have
// them.
func TestAlone(t *testing.T) {
	help := func(name string, also ...kong.Option) (text string, beside int) {
		var out bytes.Buffer
		parser, err := newParser(t.Context(), streams{&out, &out}, also...)
		testrig.Must(t, err)
		testrig.Must(t, parseAndRun(parser, []string{name, "--help"}))
		return out.String(), len(parser.Model.Children) - 1
	}
	all, err := newParser(t.Context(), streams{})
	testrig.Must(t, err)
	for _, name := range commands(all) {
		want, others := help(name)
		switch name {
		case "completion", "help", "man":
		default:
			others = 0
		}
		if got, beside := help(name, alone([]string{name})...); got != want || beside != others {
			t.Errorf("%s, with %d others: %s, and among all: %s", name, beside, got, want)
		}
	}
	for _, args := range [][]string{nil, {"perv"}, {"--version"}} {
		if alone(args) != nil {
			t.Errorf("%q leaves commands out", args)
		}
	}
}

// TestOverview: the command alone names each command in its group, in 80 columns and a screen of 30 lines.
func TestOverview(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(nil, streams{&out, &errs}); status != statusFine || errs.Len() > 0 {
		t.Errorf("status %d: %s", status, errs.Bytes())
	}
	all, err := newParser(t.Context(), streams{})
	testrig.Must(t, err)
	for _, name := range append(commands(all), "Start here\n  demo ", "\n\nUse it\n  run ", "\n\nLook into it\n  decode ") {
		if !strings.Contains(out.String(), name) {
			t.Errorf("no %q in %s", name, out.String())
		}
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) > 30 || wider(lines, 80) != "" {
		t.Errorf("%d lines, and one of more than 80 columns: %s", len(lines), wider(lines, 80))
	}
}

// wider is the first line of more columns.
func wider(lines []string, columns int) string {
	for _, line := range lines {
		if utf8.RuneCountInString(line) > columns {
			return line
		}
	}
	return ""
}
