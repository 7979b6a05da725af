package mpa

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDocument holds the first table of docs/dialects.md to the rows of the dialects.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../docs/dialects.md")
	testrig.Must(t, err)
	rows := map[string][]string{}
	_, table, _ := strings.Cut(string(page), "| dialect | constant, `--dialect` | document | Rev | DDP/RDMAP | private data | sends the first FPDU |\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if cells := strings.Split(line, " | "); len(cells) == 7 { // and not the rule below the heading
			rows[cells[1]] = cells
		}
	}
	names := map[Dialect]string{
		DialectRFC5044: "DialectRFC5044", DialectRFC6581: "DialectRFC6581", DialectRtr: "DialectRtr",
		DialectRevision0: "DialectRevision0", DialectStartKey: "DialectStartKey",
	}
	if len(rows) != len(Dialects()) {
		t.Errorf("%d rows, %d dialects", len(rows), len(Dialects()))
	}
	for _, d := range Dialects() {
		r := d.row()
		cells := rows[fmt.Sprintf("`%s`, `%s`", names[d], r.short)]
		if cells == nil {
			t.Errorf("no row of %v", d)
			continue
		}
		rev := fmt.Sprint(r.revision)
		if r.sBit && !r.enhanced {
			rev += ", S=1"
		}
		if cells[3] != rev || cells[4] != fmt.Sprint(r.version) || !strings.HasPrefix(cells[5], fmt.Sprint(r.ulpData)) {
			t.Errorf("%v: %q, and Rev is %s, the version %d, room for %d bytes", d, cells, rev, r.version, r.ulpData)
		}
		if either := strings.HasPrefix(cells[6], "either side"); either != (r.free || r.enhanced) {
			t.Errorf("%v: %q sends the first FPDU", d, cells[6])
		}
	}
}
