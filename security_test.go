package iwarp_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// securitySections are those of RFC 5042 that docs/security.md has a row for.
const securitySections = "2.2.1 2.2.2 2.2.4 2.2.5 2.2.7 3 5.1.1 5.1.2 5.1.3 5.2 5.3 5.4.2 5.4.4 5.4.5 " +
	"6.1.1 6.2.1 6.2.2 6.2.3 6.3.1 6.3.2 6.3.3 6.3.4 6.3.5 6.3.6 6.4.1 6.4.2 6.4.3.1 6.4.3.2 6.4.3.3 6.4.4 6.4.5 6.4.6 6.5 " +
	"7.1 7.2 7.3 8 A B C"

var (
	securityRow = regexp.MustCompile(`^\| ([0-9A-C][0-9.]*) `)
	testName    = regexp.MustCompile("`([a-z]+\\.(?:Test|Fuzz)[A-Za-z0-9_]*)`")
)

// TestSecurity holds docs/security.md: it has a row for each section of RFC 5042, in order,
// and the tests that it names exist.
func TestSecurity(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	must(t, err)
	tests := allTests(t)
	var sections []string
	for line := range strings.Lines(string(text)) {
		m := securityRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		sections = append(sections, m[1])
		if cells := strings.Split(line, " | "); len(cells) != 4 {
			t.Errorf("section %s: %d cells, want 4", m[1], len(cells))
		}
		for _, name := range testName.FindAllStringSubmatch(line, -1) {
			if !tests[name[1]] {
				t.Errorf("section %s: there is no %s", m[1], name[1])
			}
		}
	}
	if got := strings.Join(sections, " "); got != securitySections {
		t.Errorf("the rows are about\n%s, want\n%s", got, securitySections)
	}
}

// allTests returns the tests and fuzz targets of the module, as package.Name.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	eachTest(t, func(name string, _ *ast.FuncDecl) error {
		all[name] = true
		return nil
	})
	return all
}
