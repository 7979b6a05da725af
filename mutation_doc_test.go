package iwarp_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMutationReasons holds that what docs/mutation.md excuses is still in the code: a
// reason for code that has changed would excuse nothing, and nobody would notice before
// the next run.
func TestMutationReasons(t *testing.T) {
	doc, err := os.ReadFile("docs/mutation.md")
	must(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(\\S+\\.go) \\S+: (.*?) → .*?` \\|").FindAllStringSubmatch(string(doc), -1)
	if len(rows) < 30 {
		t.Fatalf("only %d reasons were found", len(rows))
	}
	for _, row := range rows {
		code, err := os.ReadFile(row[1])
		must(t, err)
		if was := strings.ReplaceAll(row[2], `\|`, "|"); !strings.Contains(tight(string(code)), tight(was)) {
			t.Errorf("%s has no %q, for which there is a reason", row[1], was)
		}
	}
}

// tight leaves out spaces, of which the document may have others.
func tight(code string) string { return strings.ReplaceAll(code, " ", "") }
