package interop_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// siwDoc has the tables of what comes of starting with siw.
const siwDoc = "../docs/dev/interop.md"

const siwTableHead = "| siw's constants | iwarp | on the wire | outcome |\n|---|---|---|---|\n"

// row returns a row of a table, with what was on the wire.
func (c *siwCase) row(wire string) string {
	cells := []string{cmp.Or(c.siw, "unchanged"), c.iwarp, wire, c.outcome()}
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// siwTable returns the document up to the rows of a table, these, and the rest.
func siwTable(t testing.TB, name string) (before string, rows []string, after string) {
	t.Helper()
	doc, err := os.ReadFile(siwDoc)
	testrig.Must(t, err)
	head := fmt.Sprintf("### %s\n\n%s", strings.ToUpper(name[:1])+name[1:], siwTableHead)
	before, rest, ok := strings.Cut(string(doc), head)
	table, after, end := strings.Cut(rest, "\n\n")
	if !ok || !end {
		t.Fatalf("%s has no table %q", siwDoc, name)
	}
	return before + head, strings.Split(table, "\n"), "\n\n" + after
}

// TestSiwTables holds the document against the cases that TestSiwParameters and
// TestSiwDialects try, which look at what is on the wire themselves.
func TestSiwTables(t *testing.T) {
	for name, cases := range siwTables {
		_, rows, _ := siwTable(t, name)
		var want []string
		for i := range cases {
			want = append(want, cases[i].row("..."))
		}
		got := slices.Clone(rows)
		for i, row := range got {
			if cells := strings.Split(row, " | "); len(cells) == 4 {
				cells[2] = "..."
				got[i] = strings.Join(cells, " | ")
			}
		}
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("%s, table %q (-cases +document):\n%s", siwDoc, name, d)
		}
	}
}
