package study

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestJSONIsDocumented: what iwarp study --json writes is in the document about it.
func TestJSONIsDocumented(t *testing.T) {
	testrig.WantFieldsDocumented(t, "../../docs/study-json.md", Report{})
}
