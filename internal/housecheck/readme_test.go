package housecheck

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCaptureRecipes: whoever is told to decode what tcpdump writes while that goes on is told to have it written
// packet by packet, or it would be seen in pieces of a buffer's size.
func TestCaptureRecipes(t *testing.T) {
	recipes := 0
	for _, file := range slices.Concat(filesWith(t, ".md"), filesWith(t, ".go")) {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, recipe := range regexp.MustCompile("tcpdump [^|`\n]*-w - ?").FindAllString(string(text), -1) {
			recipes++
			if !strings.Contains(recipe, "-U ") {
				t.Errorf("%s: %q has no -U", file, recipe)
			}
		}
	}
	if recipes < 3 {
		t.Errorf("found only %d recipes", recipes)
	}
}

// TestReadmeFigures: what README.md says of performance is what docs/performance.md has.
func TestReadmeFigures(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	measured, err := os.ReadFile("docs/performance.md")
	must(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+ \w+ \w+) \| (\w+) \| (\S+ \(.*?\)|busy: .*?) \| (\S+ \(.*?\)|busy: .*?) \|$`).FindAllStringSubmatch(string(readme), -1)
	if len(rows) < 6 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, row := range rows {
		for i, cc := range []string{"bbr", "reno"} {
			want := fmt.Sprintf(`(?m)^\| %s \| %s \| %s \| [^|]+ \| %s \|`,
				row[1], cc, row[2], regexp.QuoteMeta(row[3+i]))
			if !regexp.MustCompile(want).Match(measured) {
				t.Errorf("docs/performance.md has other figures with %s: %s", cc, row[0])
			}
		}
	}
}
