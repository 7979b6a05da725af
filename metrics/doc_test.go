package metrics

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDocumented: docs/metrics.md has a row for each metric.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	testrig.Must(t, err)
	for _, m := range all {
		label := ""
		if m.label != "" {
			label = "`" + m.label + "`"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", m.name, label, m.help); !strings.Contains(string(text), row) {
			t.Errorf("docs/metrics.md has no %s", row)
		}
	}
	if rows := strings.Count(string(text), "\n| `iwarp_") + strings.Count(string(text), "\n| `node_"); rows != len(all)+4 { // and internal/monitor's
		t.Errorf("%d rows, and %d metrics", rows, len(all))
	}
}
