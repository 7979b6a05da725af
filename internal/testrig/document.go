package testrig

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// WantInDocument holds that a file of the documentation has a text, which is formed as by
// [fmt.Sprintf].
func WantInDocument(tb testing.TB, file, format string, args ...any) {
	tb.Helper()
	document, err := os.ReadFile(file)
	Must(tb, err)
	if text := fmt.Sprintf(format, args...); !strings.Contains(string(document), text) {
		tb.Errorf("%s does not say %q", file, text)
	}
}
