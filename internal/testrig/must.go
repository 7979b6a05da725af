package testrig

import (
	"os"
	"testing"
)

// A Test is what testing.TB and the tests of package rapid have in common.
type Test interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
}

// Must ends the test if one of its steps has failed.
func Must(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Should reports a step that has failed, and lets the test go on.
func Should(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Lacks skips a test for what the machine lacks. In CI that would be a hole in the net, and is a failure.
func Lacks(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
