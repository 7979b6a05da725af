package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rhysd/actionlint"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestWorkflows: the workflows of hosted CI are right by actionlint, and take actions by their digest.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(repository + "/.github/workflows/*.yml")
	testrig.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no workflows")
	}
	linter, err := actionlint.NewLinter(os.Stderr, &actionlint.LinterOptions{Shellcheck: "shellcheck"})
	testrig.Must(t, err)
	found, err := linter.LintFiles(files, nil)
	if err != nil || len(found) > 0 {
		t.Errorf("%v: %v", err, found)
	}
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses:\s*(\S+)`)
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		testrig.Must(t, err)
		for _, action := range uses.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(action[1]) {
				t.Errorf("%s: %s has no digest", file, action[1])
			}
		}
	}
}
