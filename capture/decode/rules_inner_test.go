package decode

import (
	"os"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestRules holds that the requirements are those of the document.
func TestRules(t *testing.T) {
	doc, err := os.ReadFile("../../docs/requirements.md")
	testrig.Must(t, err)
	for id, rule := range rules {
		if !strings.Contains(string(doc), "\n| "+id+" | ") {
			t.Errorf("%s is not in docs/requirements.md: %s", id, rule)
		}
	}
}
