package programs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

var update = flag.Bool("update", false, "write results.json from the programs that are run, and the pages from it")

// A result is what came of a program under iwarp run. results.json has those of all tests.
type result struct {
	Test    string `json:"test"`
	Family  string `json:"family"`
	Program string `json:"program"`           // the command line of the client; the server is the same
	Package string `json:"package,omitempty"` // with its version, if the test knows that
	Outcome string `json:"outcome,omitempty"`
	Data    string `json:"data,omitempty"` // how the data were checked
	// Of a test of rdma-core's own, as either device.
	AsRoCE  string `json:"as_roce,omitempty"`
	AsIWARP string `json:"as_iwarp,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Tests whose results are shown apart. Those of dev/release are written by hand.
const (
	testOnArm64 = "TestArm64"
	testRelease = "release."
	testOnSIW   = "interop.TestPrograms"
	testPython  = "TestPyverbs"
)

const resultsFile = "results.json"

func readResults(t *testing.T) (all []result) {
	t.Helper()
	b, err := os.ReadFile(resultsFile)
	testrig.Must(t, err)
	testrig.Must(t, json.Unmarshal(b, &all))
	return all
}

// families are those of the page, in its order, with the packages of each.
var families = []struct {
	name, packages string
}{
	{"perftest", "perftest qperf"},
	{"rdma-core", "rdmacm-utils ibverbs-utils"},
	{"MPI", "openmpi-bin mpich"},
	{"UCX, libfabric and DAPL", "ucx-utils libfabric-bin dapl2-utils"},
	{"machine learning", "libtensorpipe-dev libgloo-dev"},
	{"storage", "fio libiscsi-bin qemu-utils qemu-system-x86"},
	{"key-value stores", "valkey"},
	{"languages", "python3"},
}

// TestResults holds the pages to results.json. With -update it writes them.
func TestResults(t *testing.T) {
	all := readResults(t)
	for _, r := range all {
		if !slices.ContainsFunc(families, func(f struct{ name, packages string }) bool { return f.name == r.Family }) {
			t.Errorf("%s: no family %q", r.Program, r.Family)
		}
	}
	wantPart(t, "../docs/programs.md", summaryOf(all))
	wantPart(t, "../docs/dev/programs-tables.md", tablesOf(all))
}

// wantPart wants a page to have a text between two marks, or puts it there.
func wantPart(t *testing.T, page, text string) {
	t.Helper()
	const begin, end = "<!-- from programs/results.json -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(page)
	testrig.Must(t, err)
	before, rest, ok := strings.Cut(string(b), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has not both marks: %s %s", page, begin, end)
	}
	switch {
	case *update:
		testrig.Must(t, os.WriteFile(page, []byte(before+begin+text+end+after), 0o666))
	case old != text:
		t.Errorf("%s differs from %s; go test ./programs -run TestResults -update writes:\n%s", page, resultsFile, text)
	}
}

// summaryOf has a line for each package.
func summaryOf(all []result) string {
	var b strings.Builder
	b.WriteString("\n| family | package | programs | command lines | data compared | on arm64 | with siw |\n|---|---|---|---|---|---|---|\n")
	for _, f := range families {
		for _, pkg := range strings.Fields(f.packages) {
			if s := summarize(all, pkg); s.lines > 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s | %s |\n", f.name, s.version,
					"`"+strings.Join(s.programs, "`, `")+"`", s.lines, orNone(s.compared), orNone(s.arm64), orNone(s.siw))
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// A summary counts the command lines that run, of one package.
type summary struct {
	version                     string
	programs                    []string
	lines, compared, arm64, siw int
}

func summarize(all []result, pkg string) (s summary) {
	for _, r := range all {
		if name, _, _ := strings.Cut(r.Package, " "); name != pkg || r.Outcome != "runs" {
			continue
		}
		switch {
		case r.Test == testOnArm64:
			s.arm64++
			continue
		case r.Test == testOnSIW:
			s.siw++
			continue
		case strings.HasPrefix(r.Test, testRelease):
			continue
		}
		s.version = r.Package
		s.lines++
		if strings.Contains(r.Data, "compared") {
			s.compared++
		}
		if p := programOf(r.Program); !slices.Contains(s.programs, p) {
			s.programs = append(s.programs, p)
		}
	}
	return s
}

// programOf is the program of a command line, without the settings before it.
func programOf(line string) string {
	for word := range strings.FieldsSeq(line) {
		if !strings.Contains(word, "=") {
			return word
		}
	}
	return line
}

func orNone(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// tablesOf has a table for each family.
func tablesOf(all []result) string {
	var b strings.Builder
	for _, f := range families {
		fmt.Fprintf(&b, "\n## %s\n\n| client; the server is the same | package | test | data |\n|---|---|---|---|\n",
			strings.ToUpper(f.name[:1])+f.name[1:])
		for _, r := range all {
			if r.Family == f.name && r.Test != testPython {
				fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", r.Program, r.Package, r.Test, r.shown())
			}
		}
	}
	b.WriteString("\n## Failures of rdma-core's own tests\n\n")
	b.WriteString("`TestPyverbs` runs rdma-core's tests as both kinds of device. `programs/testdata/pyverbs.txt` has the outcome of each test. These fail:\n\n")
	b.WriteString("| tests | as RoCE | as an iWARP device | why |\n|---|---|---|---|\n")
	for _, group := range byReason(all) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.Join(group.names, "`, `"), group.AsRoCE, group.AsIWARP, group.Why)
	}
	b.WriteByte('\n')
	return b.String()
}

// shown is how the data were checked, or what happened instead.
func (r *result) shown() string {
	if r.Outcome == "runs" {
		return r.Data
	}
	return r.Outcome
}

// A reason is what several tests of rdma-core fail by.
type reason struct {
	result
	names []string
}

func byReason(all []result) (groups []reason) {
	for _, r := range all {
		if r.Test != testPython {
			continue
		}
		i := slices.IndexFunc(groups, func(g reason) bool { return g.Why == r.Why })
		if i < 0 {
			i, groups = len(groups), append(groups, reason{result: r})
		}
		groups[i].names = append(groups[i].names, r.Program)
	}
	return groups
}

// TestProgramsPage: who reads about iwarp run sees its limits before what runs, on a page that is short.
func TestProgramsPage(t *testing.T) {
	b, err := os.ReadFile("../docs/programs.md")
	testrig.Must(t, err)
	const most = 3000
	if n := len(strings.Fields(string(b))); n > most {
		t.Errorf("docs/programs.md has %d words, want %d at most", n, most)
	}
	limits, runs := bytes.Index(b, []byte("\n## Limits\n")), bytes.Index(b, []byte("\n## What runs\n"))
	if limits < 0 || runs < limits {
		t.Error("docs/programs.md has not its limits before what runs")
	}
}
