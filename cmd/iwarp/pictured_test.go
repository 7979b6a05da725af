package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
)

// picturedCmd checks that a picture of docs has what the last command has printed, but for numbers, which are those of
// the run that it was made of.
func picturedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pictured FILE COMMAND")
	}
	docs := ts.Getenv("DOCS")
	drawn := drawTerminal("$ " + args[1] + "\n" + ts.ReadFile("stdout"))
	if *update {
		ts.Check(os.WriteFile(filepath.Join(docs, args[0]), []byte(drawn), 0o600))
	}
	stored, err := os.ReadFile(filepath.Join(docs, args[0]))
	ts.Check(err)
	number := regexp.MustCompile(`[0-9.]+m?s?| +`) // and how far they are padded
	if number.ReplaceAllString(drawn, "N") != number.ReplaceAllString(string(stored), "N") {
		ts.Fatalf("docs/%s is not what is printed: run this test with -update", args[0])
	}
}

// drawTerminal draws what a command prints.
func drawTerminal(text string) string {
	const left, top, line, column = 16, 28, 18, 8
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	widest := 0
	for _, l := range lines {
		widest = max(widest, utf8.RuneCountInString(l))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img" aria-label="%s">
<style>text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre}</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, 2*left+column*widest, top+line*len(lines), html.EscapeString(lines[0]))
	for i, l := range lines {
		if l != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d" xml:space="preserve">%s</text>`+"\n", left, top+line*i,
				column*utf8.RuneCountInString(l), html.EscapeString(l))
		}
	}
	return b.String() + "</svg>\n"
}
