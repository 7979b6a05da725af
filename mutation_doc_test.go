package iwarp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
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
