package decode

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDocumentedJSON holds docs/decode-json.md to what is printed.
func TestDocumentedJSON(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../../docs/decode-json.md",
		jsonFound{}, jsonStartup{}, jsonFPDU{}, jsonMissing{}, jsonRead{}, jsonFinding{}, jsonSummary{}, jsonTotals{})
}
