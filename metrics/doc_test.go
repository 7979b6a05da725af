package metrics

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDocumented: docs/metrics.md has a row for each metric.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	testrig.Must(t, err)
	for _, m := range slices.Concat(all, ofSCTP) {
		label := ""
		if m.label != "" {
			label = "`" + m.label + "`"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", m.name, label, m.help); !strings.Contains(string(text), row) {
			t.Errorf("docs/metrics.md has no %s", row)
		}
	}
	// and internal/monitor's
	if rows := strings.Count(string(text), "\n| `iwarp_") + strings.Count(string(text),
		"\n| `node_"); rows != len(all)+len(ofSCTP)+4+5 {
		t.Errorf("%d rows, and %d metrics", rows, len(all)+len(ofSCTP))
	}
}
