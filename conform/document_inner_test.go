package conform

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDocumentedJSON holds docs/conform-json.md to what is printed.
func TestDocumentedJSON(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../docs/conform-json.md", caseJSON{}, resultJSON{}, entryJSON{}, summaryJSON{})
}
