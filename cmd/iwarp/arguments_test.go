package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestOptionsBetween has options stand anywhere among the arguments of commands that take several. What a program that
// is run is given stays its own.
func TestOptionsBetween(t *testing.T) {
	for line, want := range map[string]func(*cli) bool{
		"cp q -f HOST:": func(c *cli) bool { return c.Cp.Force && slices.Equal(c.Cp.Paths, []string{"q", "HOST:"}) },
		"cp -r q --limit 1M r -vP 1 HOST:": func(c *cli) bool {
			return c.Cp.Limit == 1<<20 && c.Cp.Port == 1 && c.Cp.Verbose && len(c.Cp.Paths) == 3
		},
		"cp q --limit=1M r -P1 HOST: -r": func(c *cli) bool {
			return c.Cp.Limit == 1<<20 && c.Cp.Port == 1 && c.Cp.Recursive && len(c.Cp.Paths) == 3
		},
		"cp -f q -- -r HOST:": func(c *cli) bool {
			return !c.Cp.Recursive &&
				slices.Equal(c.Cp.Paths, []string{"q", "-r", "HOST:"})
		},
		"disk a.img --create 1M b.img": func(c *cli) bool {
			return len(c.Disk.Disk) == 2 &&
				c.Disk.Disk[1] == "b.img"
		},
		"cat host --timeout 2s 7174": func(c *cli) bool {
			return slices.Equal(c.Cat.Peer,
				[]string{"host", "7174"})
		},
		"run -- prog -f a -- b": func(c *cli) bool {
			return slices.Equal(c.Run.Program,
				[]string{"--", "prog", "-f", "a", "--", "b"})
		},
		"run prog a -f": func(c *cli) bool {
			return slices.Equal(c.Run.Program,
				[]string{"prog", "a", "-f"})
		},
		"conform 127.0.0.1:1 --timeout 10s": func(c *cli) bool {
			return slices.Equal(c.Conform.At,
				peerWords{"127.0.0.1:1"})
		},
	} {
		parser, err := newParser(t.Context(), streams{})
		testrig.Must(t, err)
		_, err = parser.Parse(gathered(parser, strings.Fields(line)))
		if got := parser.Model.Target.Interface().(cli); err != nil || !want(&got) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestOptionsBetweenWrong has the errors be those of the parser.
func TestOptionsBetweenWrong(t *testing.T) {
	for line, want := range map[string]string{
		"cp q HOST: --limit": "--limit: its value is missing, as in --limit=RATE",
		"cp q -Z HOST:":      "unknown flag -Z",
		"cp q --none HOST:":  "unknown flag --none",
		"cp":                 `expected "<paths> ..."`,
		"cp -f":              `expected "<paths> ..."`,
		"decode a b":         "unexpected argument b",
	} {
		parser, err := newParser(t.Context(), streams{})
		testrig.Must(t, err)
		if _, err := parser.Parse(gathered(parser, strings.Fields(line))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
