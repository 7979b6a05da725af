package housecheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedCode: each piece of Go in a document is a piece of a file that is compiled, and that tests run: lines
// that follow each other, whatever they are indented by. So what a reader copies works.
func TestDocumentedCode(t *testing.T) {
	var sources strings.Builder
	documents, pieces := filesWith(t, ".md"), 0
	for _, file := range filesWith(t, ".go") {
		text, err := os.ReadFile(file)
		must(t, err)
		sources.WriteString(flushLeft(string(text)))
	}
	for _, file := range documents {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, block := range regexp.MustCompile("(?s)\n```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			pieces++
			code := flushLeft(block[1])
			if file == "README.md" { // whose program is the body of an Example
				code = strings.TrimSuffix(strings.TrimPrefix(code, "\nfunc main() {"), "\n}")
			}
			if !strings.Contains(sources.String(), code+"\n") {
				t.Errorf("%s has code that is in no file:\n%s", file, block[1])
			}
		}
	}
	if pieces < 10 {
		t.Errorf("only %d pieces of code were found", pieces)
	}
}

// TestDocumentLinks looks for what documents refer to within the repository: files, and headings in them.
func TestDocumentLinks(t *testing.T) {
	links := 0
	for _, file := range filesWith(t, ".md") {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^):#]*)(#[^)]+)?\)`).FindAllStringSubmatch(string(text), -1) {
			links++
			to := filepath.Join(filepath.Dir(file), link[1])
			if link[1] == "" {
				to = file
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s refers to %s: %v", file, link[1], err)
			} else if strings.HasSuffix(to, ".md") && link[2] != "" && !slices.Contains(anchors(t, to), link[2][1:]) {
				t.Errorf("%s refers to %s, which has no heading %s", file, to, link[2])
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links", links)
	}
}

// anchors are those of a document's headings, as GitHub makes them.
func anchors(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		words := strings.ToLower(link.ReplaceAllString(heading[1], "$1"))
		all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(words, ""), " ", "-"))
	}
	return all
}

// TestDocumentIndex: docs/README.md leads to each page of docs.
func TestDocumentIndex(t *testing.T) {
	index, err := os.ReadFile("docs/README.md")
	must(t, err)
	for _, file := range filesWith(t, ".md") {
		page, err := filepath.Rel("docs", file)
		if err != nil || strings.HasPrefix(page, "..") || page == "README.md" {
			continue
		}
		if !strings.Contains(string(index), "]("+filepath.ToSlash(page)+")") {
			t.Errorf("docs/README.md does not lead to %s", file)
		}
	}
}

// flushLeft is a text without its indentation and empty lines.
func flushLeft(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("\n" + line)
		}
	}
	return b.String()
}

func filesWith(t *testing.T, ext string) (files []string) {
	t.Helper()
	must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ext) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// TestSteps: CONTRIBUTING.md has a row for each step of .ci/run, and for nothing else.
func TestSteps(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	must(t, err)
	page, err := os.ReadFile("CONTRIBUTING.md")
	must(t, err)
	named := func(text []byte, row string) (names []string) {
		for _, m := range regexp.MustCompile(row).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		slices.Sort(names)
		return names
	}
	steps, rows := named(script, `(?m)^step_(\w+)\(\)`), named(page, "(?m)^\\| `(\\w+)` \\|")
	if !slices.Equal(steps, rows) || len(steps) < 10 {
		t.Errorf("the steps are %q, and CONTRIBUTING.md has %q", steps, rows)
	}
}

// TestExamples: examples/README.md tells of each example, and each has a test.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("examples/README.md")
	must(t, err)
	dirs, err := filepath.Glob("examples/*/main.go")
	must(t, err)
	if len(dirs) < 5 {
		t.Errorf("only %d examples", len(dirs))
	}
	for _, main := range dirs {
		name := filepath.Base(filepath.Dir(main))
		if !strings.Contains(string(text), "| ["+name+"]("+name+") |") {
			t.Errorf("examples/README.md has no row for %s", name)
		}
		if tests, err := filepath.Glob("examples/" + name + "/*_test.go"); err != nil || len(tests) == 0 {
			t.Errorf("%s has no test (%v)", name, err)
		}
	}
}
