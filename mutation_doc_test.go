package iwarp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMutationReasons holds that what docs/mutation.md excuses is still in the code, in the
// function that is named: a reason for code that has changed would excuse nothing, and
// nobody would notice before the next run.
func TestMutationReasons(t *testing.T) {
	doc, err := os.ReadFile("docs/mutation.md")
	must(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(\\S+\\.go) (\\S+): (.*?) → .*?` \\|").FindAllStringSubmatch(string(doc), -1)
	if len(rows) < 30 {
		t.Fatalf("only %d reasons were found", len(rows))
	}
	files := map[string]map[string]string{}
	for _, row := range rows {
		file, function, was := row[1], row[2], strings.ReplaceAll(row[3], `\|`, "|")
		if files[file] == nil {
			files[file] = functionsOf(t, file)
		}
		switch code, ok := files[file][function]; {
		case !ok:
			t.Errorf("%s has no function %s, for which there is a reason: %s", file, function, was)
		case !strings.Contains(code, mutated(was)):
			t.Errorf("%s in %s has no %q, for which there is a reason", function, file, was)
		}
	}
}

// TestMutationResult adds up the results of the runs that were carried to the end: what was changed was killed or has
// survived, and each survivor of a package has its reason.
func TestMutationResult(t *testing.T) {
	text, err := os.ReadFile("docs/mutation.md")
	must(t, err)
	survived := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `\\.ci/mutate ([^:`]+).*?`.*? \\| (\\d+) \\| (\\d+) \\| (\\d+) \\|(.*)$").FindAllStringSubmatch(string(text), -1) {
		var n [3]int
		for i := range n {
			n[i], err = strconv.Atoi(row[2+i])
			must(t, err)
		}
		if n[0] != n[1]+n[2] {
			t.Errorf("%s: %d changes are not %d and %d", row[1], n[0], n[1], n[2])
		}
		if row[5] == "" { // else it tells what was done about them since
			survived[row[1]] += n[2]
		}
	}
	if len(survived) < 10 {
		t.Fatalf("only the results of %d packages were found", len(survived))
	}
	for dir, n := range survived {
		reasons := regexp.MustCompile("(?m)^\\| `"+regexp.QuoteMeta(dir)+"/\\w+\\.go ").FindAllString(string(text), -1)
		if len(reasons) != n {
			t.Errorf("%s: %d survivors have %d reasons", dir, n, len(reasons))
		}
	}
}

// functionsOf returns the text of each function of a file; methods of the same name are one.
func functionsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	must(t, err)
	all := map[string]string{}
	for _, d := range parsed.Decls {
		name := "(declarations)" // of variables
		if f, ok := d.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
		all[name] += tight(string(text[set.Position(d.Pos()).Offset:set.Position(d.End()).Offset]))
	}
	return all
}

// mutated is the text that a change stands for. Of an if, only the condition is changed; of
// a long call, only the function is named.
func mutated(was string) string {
	return tight(strings.TrimSuffix(strings.TrimPrefix(was, "if "), "...)"))
}

// tight leaves out what the document may have otherwise: spaces and ends of lines.
func tight(code string) string { return strings.Join(strings.Fields(code), "") }
