package main

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestPerfDocumentedJSON holds docs/perf-json.md to what is printed.
func TestPerfDocumentedJSON(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../../docs/perf-json.md", perfDocument{})
}
