//go:build interop

package interop_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// siwConformDoc has what iwarp conform finds of siw, a table for each run.
const siwConformDoc = "../docs/conformance-siw.md"

// conformRows returns the rows of a run's table in the document, by case.
func conformRows(t testing.TB, title string) map[string]string {
	t.Helper()
	doc, err := os.ReadFile(siwConformDoc)
	testrig.Must(t, err)
	_, table, _ := strings.Cut(string(doc), "## "+title+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := make(map[string]string)
	for row := range strings.Lines(table) {
		if rest, ok := strings.CutPrefix(row, "| `"); ok {
			id, _, _ := strings.Cut(rest, "`")
			rows[id] = strings.TrimSuffix(row, "\n")
		}
	}
	return rows
}

// conformRow returns a result's row.
func conformRow(r *conform.Result) string {
	var table bytes.Buffer
	(&conform.Report{Results: []conform.Result{*r}}).WriteMarkdown(&table)
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	return lines[len(lines)-1]
}

// passing is what a result's row has that is other each time: the peer's own addresses,
// and bytes of its memory that siw sends as a pad.
var passing = regexp.MustCompile(`(STag[= ]|TO[= ]|octets? of zero; got )(0x)?[0-9a-f]{2}[0-9a-f ]*`)

// asDocumented reports whether a result is what the document says.
func (k *conformCheck) asDocumented(r *conform.Result) bool {
	return passing.ReplaceAllString(conformRow(r), "$1") == passing.ReplaceAllString(k.documented[r.Case.ID], "$1")
}

// judgedAsDocumented reports whether a result has the verdict that the document has.
func (k *conformCheck) judgedAsDocumented(r *conform.Result) bool {
	return verdictOf(conformRow(r)) == verdictOf(k.documented[r.Case.ID])
}

// verdictOf returns the verdict in a row: case, requirements, section, verdict, reason.
func verdictOf(row string) string {
	cells := strings.Split(row, "|")
	if len(cells) < 5 {
		return "no row"
	}
	return strings.TrimSpace(cells[4])
}

// writeConformTables puts tables in place of the document's.
func writeConformTables(t testing.TB, tables []string) {
	t.Helper()
	doc, err := os.ReadFile(siwConformDoc)
	testrig.Must(t, err)
	head, _, _ := strings.Cut(string(doc), "\n## ")
	all := head + "\n" + strings.Join(tables, "\n")
	testrig.Must(t, os.WriteFile(siwConformDoc, []byte(all), 0o644))
}
