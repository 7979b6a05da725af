package housecheck

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rfc5042 are the sections of RFC 5042, by its table of contents, but for those that only hold others.
const rfc5042 = "1 2.1 2.2.1 2.2.2 2.2.3 2.2.4 2.2.5 2.2.6 2.2.7 2.2.8 2.3.1 2.3.2 2.3.3 2.3.4 2.3.5 3 4 " +
	"5.1.1 5.1.2 5.1.3 5.2 5.3 5.4.1 5.4.2 5.4.3 5.4.4 5.4.5 " +
	"6.1.1 6.2.1 6.2.2 6.2.3 6.3.1 6.3.2 6.3.3 6.3.4 6.3.5 6.3.6 6.4.1 6.4.2 6.4.3.1 6.4.3.2 6.4.3.3 6.4.4 6.4.5 6.4.6 6.5 " +
	"7.1 7.2 7.3 8 9 10 A B C"

// withoutRow are those that docs/security.md has no row for, and why.
var withoutRow = map[string]string{
	"1":     "introduction",
	"2.1":   "the components: docs/security.md says at its head what they are here",
	"2.3.1": "names of interfaces; what they give access to is in 2.2",
	"2.3.2": "the same",
	"2.3.3": "the same",
	"2.3.4": "how memory and streams are set up; what can go wrong is in 6",
	"2.3.5": "how bytes are moved; what can go wrong is in 6",
	"4":     "what kinds of attackers there are",
	"9":     "IANA",
	"10":    "references",
}

var (
	securityRow = regexp.MustCompile(`^\| ([0-9A-C][0-9.]*) `)
	testName    = regexp.MustCompile("`([a-z]+\\.(?:Test|Fuzz)[A-Za-z0-9_]*)`")
)

// TestSecurity holds docs/security.md and docs/dev/security.md: each has a row for each section of RFC 5042, in order,
// but for those that withoutRow excuses. The tests that they name exist, in the rows and elsewhere.
func TestSecurity(t *testing.T) {
	tests := allTests(t)
	want := slices.DeleteFunc(strings.Fields(rfc5042), func(s string) bool { return withoutRow[s] != "" })
	for file, cells := range map[string]int{"docs/security.md": 3, "docs/dev/security.md": 2} {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, name := range testName.FindAllStringSubmatch(string(text), -1) {
			if !tests[name[1]] {
				t.Errorf("%s: there is no %s", file, name[1])
			}
		}
		if sections := sectionRows(t, string(text), cells); !slices.Equal(sections, want) {
			t.Errorf("%s: the rows are about\n%s, want\n%s", file, sections, want)
		}
	}
}

// sectionRows returns the sections that a text has rows about, each of so many cells.
func sectionRows(t *testing.T, text string, cells int) (sections []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		m := securityRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		sections = append(sections, m[1])
		if n := len(strings.Split(line, " | ")); n != cells {
			t.Errorf("section %s: %d cells, want %d", m[1], n, cells)
		}
	}
	return sections
}

// allTests returns the tests and fuzz targets of the module, as package.Name.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	eachTest(t, func(_, name string, _ *ast.FuncDecl) error {
		all[name] = true
		return nil
	})
	return all
}
