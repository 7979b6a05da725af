package housecheck

import (
	"os"
	"path/filepath"
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

// TestReadmeFigures: what README.md says of speed is what docs/performance.md has in its summary.
func TestReadmeFigures(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	measured, err := os.ReadFile("docs/performance.md")
	must(t, err)
	_, section, _ := strings.Cut(string(readme), "\n## Is it fast?\n")
	section, _, _ = strings.Cut(section, "\n## ")
	figures := regexp.MustCompile(`(?m)^- .+$`).FindAllString(section, -1)
	if len(figures) < 3 {
		t.Errorf("only %d figures", len(figures))
	}
	for _, line := range figures {
		if !strings.Contains(string(measured), "\n"+line+"\n") {
			t.Errorf("docs/performance.md does not have: %s", line)
		}
	}
}

// TestReadmeCommands: each command that README.md names is run by a script of cmd/iwarp, or is one of a library.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	scripts, err := filepath.Glob("cmd/iwarp/testdata/script/*.txtar")
	must(t, err)
	var tried strings.Builder
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		must(t, err)
		tried.Write(text)
	}
	named := regexp.MustCompile("(?:`|    )(iwarp [a-z]+)").FindAllStringSubmatch(string(readme), -1)
	if len(named) < 10 {
		t.Errorf("only %d commands", len(named))
	}
	for _, command := range named {
		if !strings.Contains(tried.String(), command[1]+" ") && !strings.Contains(tried.String(), command[1]+"\n") {
			t.Errorf("no script runs %s", command[1])
		}
	}
}
