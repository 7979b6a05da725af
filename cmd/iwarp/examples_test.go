package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestExamples: the help of each command has examples, and the parser takes each of them.
func TestExamples(t *testing.T) {
	all, err := newParser(t.Context(), streams{})
	testrig.Must(t, err)
	for _, command := range commands(all) {
		lines := examples()[command]
		if len(lines) == 0 {
			t.Errorf("%s has no example", command)
		}
		var help bytes.Buffer
		if run([]string{command, "--help"}, streams{&help, &help}); !strings.Contains(help.String(), "Examples:\n") {
			t.Errorf("the help of %s has no examples", command)
		}
		for _, line := range lines {
			if !strings.Contains(help.String(), "\n  "+line+"\n") {
				t.Errorf("the help of %s lacks %q", command, line)
			}
			testExample(t, command, line)
		}
	}
}

// testExample parses one.
func testExample(t *testing.T, command, line string) {
	t.Helper()
	words := regexp.MustCompile(`'[^']*'|[^\s'()|]+`).FindAllString(line, -1)
	for i, word := range words {
		words[i] = strings.Trim(word, "'")
	}
	for len(words) > 0 && words[0] != "iwarp" {
		words = words[1:]
	}
	end := len(words)
	for i, word := range words {
		if strings.ContainsAny(word[:1], "#<>|") || i > 1 && word == "man" {
			end = min(end, i)
		}
	}
	if end < 2 || words[1] != command {
		t.Errorf("%s: %q is not one of it", command, line)
		return
	}
	parser, err := newParser(t.Context(), streams{})
	testrig.Must(t, err)
	if err := mistaken(parser, words[1:end]); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	if _, err := parser.Parse(gathered(parser, words[1:end])); err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

// TestHelpWidth: no help has lines of more than 80 columns where nothing tells the width.
func TestHelpWidth(t *testing.T) {
	all, err := newParser(t.Context(), streams{})
	testrig.Must(t, err)
	for _, command := range commands(all) {
		var help bytes.Buffer
		run([]string{command, "--help"}, streams{&help, &help})
		if long := wider(strings.Split(help.String(), "\n"), 80); long != "" {
			t.Errorf("%s: %q", command, long)
		}
	}
}
