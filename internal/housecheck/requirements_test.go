package housecheck

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// requirementsFile holds the tables of demands whose last column this file checks.
const requirementsFile = "docs/requirements.md"

// The two values of the State column.
const (
	inScope = "in scope"
	planned = "planned"
)

// wholeDocument names the rows that stand for a whole document and the
// letter of the table it is broken down in.
var wholeDocument = map[string]string{"X01": "D", "X02": "P", "X03": "A", "X04": "Z"}

var update = flag.Bool("update", false, "rewrite what a test compares: "+requirementsFile+", "+apiFile+", the picture")

var (
	idPattern    = regexp.MustCompile(`\b[A-Z][0-9]{2}\b`)
	rangePattern = regexp.MustCompile(`\b([A-Z][0-9]{2})-([A-Z][0-9]{2})\b`)
	rowPattern   = regexp.MustCompile(`^\| [A-Z][0-9]{2} \|`)
)

// A row is one line of a table of demands.
type row struct {
	line  int // index of the line in the file
	id    string
	cells []string // ID, Section, Level, Demand, State, Tests
}

func (r row) state() string { return r.cells[4] }
func (r row) tests() string { return r.cells[5] }

// A proofs maps the ID of a demand to the names of the tests that claim to
// prove it, each "package.Function".
type proofs map[string][]string

// TestRequirements holds the tables of demands against the tests of the
// module: a test names only demands that exist, every demand in scope has a
// test, and the Tests column says which. With -update it writes that column.
func TestRequirements(t *testing.T) {
	lines, rows := loadRows(t)
	claims := loadProofs(t)
	if ids := unknownIDs(rows, claims); len(ids) > 0 {
		t.Errorf("named by a test but not in %s: %s", requirementsFile, strings.Join(ids, ", "))
	}
	if ids := unproved(rows, claims); len(ids) > 0 {
		t.Errorf("in scope without a test: %s", strings.Join(ids, ", "))
	}
	stale := staleIDs(rows, claims)
	switch {
	case len(stale) == 0:
	case *update:
		writeColumn(t, lines, rows, claims)
	default:
		t.Errorf("Tests column out of date, run `go test ./internal/housecheck -run TestRequirements -update`: %s",
			strings.Join(stale, ", "))
	}
}

// loadRows reads the file of demands, as lines and as rows.
func loadRows(t *testing.T) ([]string, []row) {
	t.Helper()
	text, err := os.ReadFile(requirementsFile)
	must(t, err)
	lines := strings.Split(string(text), "\n")
	rows, err := parseRows(lines)
	if err != nil {
		t.Fatalf("%s: %v", requirementsFile, err)
	}
	return lines, rows
}

// parseRows picks the demands out of the lines; an ID given twice is an error.
func parseRows(lines []string) ([]row, error) {
	var rows []row
	seen := map[string]bool{}
	for i, line := range lines {
		if !rowPattern.MatchString(line) {
			continue
		}
		r, err := parseRow(i, line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if seen[r.id] {
			return nil, fmt.Errorf("line %d: %s given twice", i+1, r.id)
		}
		seen[r.id] = true
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, errors.New("no demands found")
	}
	return rows, nil
}

// parseRow splits one table line into its six cells.
func parseRow(index int, line string) (row, error) {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	cells := strings.Split(line, "|")
	if len(cells) != 6 {
		return row{}, fmt.Errorf("%d cells, want 6", len(cells))
	}
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
	}
	r := row{line: index, id: cells[0], cells: cells}
	if s := r.state(); s != inScope && s != planned {
		return row{}, fmt.Errorf("%s: unknown state %q", r.id, s)
	}
	return r, nil
}

// loadProofs collects the claims of all test files of the module.
func loadProofs(t *testing.T) proofs {
	t.Helper()
	claims := proofs{}
	benches := map[string]*bench{}
	eachTest(t, func(path, name string, fn *ast.FuncDecl) error {
		ids, err := provenIDs(fn.Doc.Text())
		if len(ids) > 0 {
			err = cmp.Or(err, noProof(benches, path, fn))
		}
		for _, id := range ids {
			claims[id] = append(claims[id], name)
		}
		return err
	})
	for id, names := range claims {
		slices.Sort(names)
		claims[id] = slices.Compact(names)
	}
	return claims
}

// noProof says why a function that claims to prove something is no proof.
func noProof(benches map[string]*bench, path string, fn *ast.FuncDecl) (err error) {
	if ok, err := built(path); !ok {
		return cmp.Or(err, errors.New("no proof: CI does not build its file"))
	}
	dir := filepath.Dir(path)
	if benches[dir] == nil {
		if benches[dir], err = newBench(dir); err != nil {
			return err
		}
	}
	if why := benches[dir].why(fn); why != "" {
		return errors.New("no proof: " + why)
	}
	return nil
}

// skipDir keeps the walk out of directories the go command ignores (testdata
// and those whose name starts with a dot or an underscore) and of other modules.
func skipDir(path, name string) error {
	if path == "." {
		return nil
	}
	if name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_' {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// eachTest gives all tests, fuzz targets and examples of the module as package.Name,
// whatever the build constraints of their files.
func eachTest(t *testing.T, give func(path, name string, fn *ast.FuncDecl) error) {
	t.Helper()
	must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipDir(path, d.Name())
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && isTest(fn) {
				if err := give(path, strings.TrimSuffix(file.Name.Name, "_test")+"."+fn.Name.Name, fn); err != nil {
					return fmt.Errorf("%s: %s: %w", path, fn.Name.Name, err)
				}
			}
		}
		return nil
	}))
}

// isTest reports whether fn is a top-level test, fuzz target or example.
func isTest(fn *ast.FuncDecl) bool {
	if fn.Recv != nil {
		return false
	}
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(fn.Name.Name, prefix) {
			return true
		}
	}
	return false
}

// provenIDs returns the IDs in the parts of a doc comment that begin with a
// line "Proves ..." and run to the next blank line. A text that begins so and
// names no ID is an error.
func provenIDs(doc string) ([]string, error) {
	var ids []string
	for _, claim := range claimsIn(doc) {
		ranges, err := expandRanges(claim)
		if err != nil {
			return nil, err
		}
		found := append(idPattern.FindAllString(claim, -1), ranges...)
		if len(found) == 0 {
			return nil, fmt.Errorf("no ID in %q", claim)
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// claimsIn returns the "Proves ..." parts of a doc comment, each on one line.
func claimsIn(doc string) []string {
	var claims []string
	inside := false
	for line := range strings.SplitSeq(doc, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "Proves "):
			claims = append(claims, line)
			inside = true
		case line == "":
			inside = false
		case inside:
			claims[len(claims)-1] += " " + line
		}
	}
	return claims
}

// expandRanges returns every ID of the ranges, such as F01-F03, in a text.
func expandRanges(text string) ([]string, error) {
	var ids []string
	for _, m := range rangePattern.FindAllStringSubmatch(text, -1) {
		from, to := m[1], m[2]
		if from[0] != to[0] || from >= to {
			return nil, fmt.Errorf("bad range %q", m[0])
		}
		for n := number(from); n <= number(to); n++ {
			ids = append(ids, fmt.Sprintf("%c%02d", from[0], n))
		}
	}
	return ids, nil
}

// number returns the digits of an ID as a number: 7 for F07.
func number(id string) int {
	return int(id[1]-'0')*10 + int(id[2]-'0')
}

// unknownIDs lists the IDs that tests name and no row has.
func unknownIDs(rows []row, claims proofs) []string {
	known := map[string]bool{}
	for _, r := range rows {
		known[r.id] = true
	}
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(claims)) {
		if !known[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// unproved lists the demands in scope that no test proves.
func unproved(rows []row, claims proofs) []string {
	var ids []string
	for _, r := range rows {
		if r.state() == inScope && !proved(r.id, rows, claims) {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// proved reports whether a demand has a test, or, if it stands for a whole
// document, whether all rows of that document have one.
func proved(id string, rows []row, claims proofs) bool {
	letter, whole := wholeDocument[id]
	if !whole {
		return len(claims[id]) > 0
	}
	found := false
	for _, r := range rows {
		if !strings.HasPrefix(r.id, letter) {
			continue
		}
		if len(claims[r.id]) == 0 {
			return false
		}
		found = true
	}
	return found
}

// column is the text a row's Tests cell must have.
func column(r row, rows []row, claims proofs) string {
	var parts []string
	for _, name := range claims[r.id] {
		parts = append(parts, "`"+name+"`")
	}
	if letter, whole := wholeDocument[r.id]; whole && proved(r.id, rows, claims) {
		parts = append(parts, "all "+letter+" rows")
	}
	if len(parts) == 0 && r.state() == planned {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// staleIDs lists the rows whose Tests cell is not the generated one.
func staleIDs(rows []row, claims proofs) []string {
	var ids []string
	for _, r := range rows {
		if r.tests() != column(r, rows, claims) {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// writeColumn writes the file back with every Tests cell generated anew.
func writeColumn(t *testing.T, lines []string, rows []row, claims proofs) {
	t.Helper()
	for _, r := range rows {
		cells := slices.Clone(r.cells)
		cells[5] = column(r, rows, claims)
		lines[r.line] = "| " + strings.Join(cells, " | ") + " |"
	}
	text := strings.Join(lines, "\n")
	must(t, os.WriteFile(requirementsFile, []byte(text), 0o644))
}

// TestProvenIDs checks how the IDs are read out of a doc comment.
func TestProvenIDs(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"TestA does this.\n", ""},
		{"TestA does this.\n\nProves F01, F05: framing.\n", "F01 F05"},
		{"Proves F01-F03 and\nD04.\n\nNot F09.\n", "D04 F01 F02 F03"},
		{"Proves F98-F99.\nProves X01, F98.\n", "F98 F99 X01"},
		{"Proves F01, CRC32C and RFC5044.\n", "F01"},
		{"Proves nothing.\n", "error"},
		{"Proves F03-F01.\n", "error"},
		{"Proves F01-S02.\n", "error"},
	} {
		ids, err := provenIDs(c.doc)
		got := strings.Join(ids, " ")
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.doc, got, c.want)
		}
	}
}
