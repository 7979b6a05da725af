package perf

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDocumentedJSON holds docs/perf-json.md to what is printed.
func TestDocumentedJSON(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../docs/perf-json.md", Report{})
}
