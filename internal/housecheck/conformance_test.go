package housecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConformanceSiw: docs/conformance-siw.md counts what the recorded runs came to, and names under a cause each case
// that failed, and none that passed.
func TestConformanceSiw(t *testing.T) {
	text, err := os.ReadFile("docs/conformance-siw.md")
	must(t, err)
	page := string(text)
	files, err := filepath.Glob("interop/testdata/siw-conform/*.jsonl")
	must(t, err)
	if len(files) != 3 {
		t.Fatalf("%d runs are recorded", len(files))
	}
	failed, open := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		counts := make(map[string]int)
		for id, verdict := range recordedVerdicts(t, file) {
			counts[verdict]++
			failed[id] = failed[id] || verdict == "fail"
			open[id] = open[id] || verdict == "inconclusive"
		}
		row := fmt.Sprintf("/%s) | %d | %d | %d | %d |\n", path.Base(filepath.ToSlash(file)),
			counts["pass"], counts["fail"], counts["not applicable"], counts["inconclusive"])
		if !strings.Contains(page, row) {
			t.Errorf("docs/conformance-siw.md has no %q", row)
		}
	}
	_, causes, _ := strings.Cut(page, "\n## What fails\n")
	causes, _, _ = strings.Cut(causes, "\n## ")
	for _, named := range regexp.MustCompile("`([a-z]+/[a-z0-9-]+)`").FindAllStringSubmatch(causes, -1) {
		if !failed[named[1]] && !open[named[1]] {
			t.Errorf("docs/conformance-siw.md names %s, which has not failed", named[1])
		}
		delete(failed, named[1])
	}
	for id, is := range failed {
		if is {
			t.Errorf("docs/conformance-siw.md gives no cause for %s", id)
		}
	}
}

// recordedVerdicts returns the verdicts of a run, by case.
func recordedVerdicts(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	verdicts := make(map[string]string)
	for line := range bytes.Lines(text) {
		var record struct{ ID, Verdict string }
		must(t, json.Unmarshal(line, &record))
		verdicts[record.ID] = record.Verdict
	}
	return verdicts
}
