//go:build linux && interposer

package programs

import (
	"os"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// writeTable wants docs/programs.md to have a table, and writes it to IWARP_TABLE and a suffix, if that is set.
func writeTable(t *testing.T, suffix, table string) {
	t.Helper()
	doc, err := os.ReadFile("../docs/programs.md")
	testrig.Must(t, err)
	if !strings.Contains(withoutVersions(string(doc)), withoutVersions(table)) {
		t.Errorf("docs/programs.md has not this table, but for versions and outcomes:\n%s", table)
	}
	if file := os.Getenv("IWARP_TABLE"); file != "" {
		testrig.Must(t, os.WriteFile(file+suffix, []byte(table), 0o666))
	}
}

// withoutVersions drops what differs from run to run: the versions of packages, and what failed or was not run, which
// the test says by itself.
func withoutVersions(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		cells := strings.Split(line, " | ")
		if len(cells) > 3 {
			cells[1], _, _ = strings.Cut(cells[1], " ")
		}
		b.WriteString(strings.ReplaceAll(strings.Join(cells, " | "), " | failed | ", " | runs | "))
	}
	return b.String()
}
