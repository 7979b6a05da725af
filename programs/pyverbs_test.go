//go:build linux && interposer

package programs

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// pyverbsOutcomes has what is known of each test.
const pyverbsOutcomes = "testdata/pyverbs.txt"

// TestPyverbs runs rdma-core's own tests, which are Python's: pyverbs. What comes of each, in both guises, is what
// testdata/pyverbs.txt has of it, and a test that is not named there is skipped, as it is for what there is not here.
// With -update it writes those that fail to results.json.
func TestPyverbs(t *testing.T) {
	l := built(t)
	address, tests := host(t, true), pyverbsTests(t)
	known := knownOutcomes(t)
	for i, as := range pyverbsGuises {
		all := func(t *testing.T) {
			t.Setenv(guiseVariable, string(as))
			results := filepath.Join(t.TempDir(), "results")
			p := startWords(t, l, nil, "/usr/bin/python3", "-B", "testdata/rdma_core_tests.py", tests,
				address, freePort(t), results,
				"--dev", "iwarp0", "--port", "1", "--gid", "0")
			p.awaitSuccess(t)
			judgeOutcomes(t, outcomes(t, results), known, i)
			if t.Failed() {
				t.Log(p.out.String())
			}
		}
		t.Run(string(as), all)
		// tests are about what is refused, too
		capturedWith(t, string(as), wantedCaptures{connected: 1, refused: true}, all)
	}
	wantResults(t, testPython, pyverbsFailures(known))
}

// pyverbsGuises are in the order of the columns of testdata/pyverbs.txt.
var pyverbsGuises = []Guise{RoCE, IWARP}

const (
	passes  = "passes"
	fails   = "fails"
	skipped = "skipped"
	either  = "either" // passes or fails
)

// pyverbsTests returns a directory with rdma-core's package tests: from its documentation, or from the package where an
// installation has none.
func pyverbsTests(t *testing.T) string {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import pyverbs.device").Run(); err != nil {
		testrig.Lacks(t, fmt.Sprintf("Python has no pyverbs: %v", err))
	}
	const documentation = "usr/share/doc/rdma-core/tests"
	from := "/" + documentation
	if _, err := os.Stat(filepath.Join(from, "__init__.py")); err != nil {
		dir := t.TempDir()
		if out, err := exec.Command("sh", "-c", `cd "$1" && apt-get -q download rdma-core && dpkg -x rdma-core_*.deb .`,
			"sh", dir).CombinedOutput(); err != nil {
			testrig.Lacks(t, fmt.Sprintf("rdma-core's tests cannot be had: %v\n%s", err, out))
		}
		from = filepath.Join(dir, documentation)
	}
	to := t.TempDir()
	testrig.Must(t, os.Mkdir(filepath.Join(to, "tests"), 0o777))
	files, err := filepath.Glob(filepath.Join(from, "*.py*"))
	testrig.Must(t, err)
	for _, file := range files {
		inflate(t, file, filepath.Join(to, "tests", strings.TrimSuffix(filepath.Base(file), ".gz")))
	}
	return to
}

// inflate copies a file, which may be compressed.
func inflate(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	testrig.Must(t, err)
	defer in.Close()
	content := io.Reader(in)
	if strings.HasSuffix(from, ".gz") {
		content, err = gzip.NewReader(in)
		testrig.Must(t, err)
	}
	all, err := io.ReadAll(content)
	testrig.Must(t, err)
	testrig.Must(t, os.WriteFile(to, all, 0o666))
}

// An outcome is what came of a test, and why.
type outcome struct{ what, why string }

// outcomes reads what testdata/rdma_core_tests.py has written.
func outcomes(t *testing.T, file string) map[string]outcome {
	t.Helper()
	text, err := os.ReadFile(file)
	testrig.Must(t, err)
	all := map[string]outcome{}
	for line := range strings.Lines(string(text)) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		all[words[0]] = outcome{words[1], words[2]}
	}
	return all
}

// knownOutcomes reads testdata/pyverbs.txt: tests, with what comes of them in each guise.
func knownOutcomes(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(pyverbsOutcomes)
	testrig.Must(t, err)
	known := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 1+len(pyverbsGuises) && words[0] != "#" {
			known[words[0]] = words[1:]
		}
	}
	return known
}

// judgeOutcomes wants what is known of each test in a guise, and says how many there were of each kind.
func judgeOutcomes(t *testing.T, got map[string]outcome, known map[string][]string, guise int) {
	t.Helper()
	count := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		want, is := skipped, got[name]
		count[is.what]++
		if all, ok := known[name]; ok {
			want = all[guise]
		}
		if is.what != want && (want != either || is.what == skipped) {
			t.Errorf("%s: %s, want %s: %s", name, is.what, want, is.why)
		}
	}
	for name := range known {
		if _, ok := got[name]; !ok {
			t.Errorf("%s: was not run", name)
		}
	}
	t.Logf("%d of rdma-core's own tests pass, %d fail, %d are skipped", count[passes], count[fails], count[skipped])
}

// whyPyverbs has a reason for each test that fails in a guise, or may: by the end of its name, or of those of one kind.
var whyPyverbs = []struct{ test, why string }{
	{"test_rdmacm_async_udp_traffic", "librdmacm has no datagrams here: `rdma_create_id` with `RDMA_PS_UDP` is `EPROTONOSUPPORT`, which this test counts as an error"},
	{"test_rdmacm_async_write", "looks for what was written when the Write has completed, which tells that TCP has it"},
	{"test_rdmacm_async_traffic_external_qp", "waits for a `CONNECT_RESPONSE`, which Linux has for no iWARP device"},
	{"", "connects by itself: `ibv_modify_qp` to RTS is `EINVAL`, as with siw"},
}

// pyverbsFailures are the tests that fail in a guise, or may, with the reason.
func pyverbsFailures(known map[string][]string) (failures []result) {
	for _, row := range whyPyverbs {
		for _, name := range slices.Sorted(maps.Keys(known)) {
			short, in := name[strings.LastIndex(name, ".")+1:], known[name]
			if fallible(in) && (short == row.test || row.test == "" && !explained(short)) {
				failures = append(failures,
					result{Family: "rdma-core", Program: short, AsRoCE: in[0], AsIWARP: in[1], Why: row.why})
			}
		}
	}
	return failures
}

// fallible reports whether a test fails in a guise, or may.
func fallible(in []string) bool { return slices.Contains(in, fails) || slices.Contains(in, either) }

// explained reports whether a test has a reason of its own.
func explained(test string) bool {
	for _, row := range whyPyverbs {
		if row.test == test {
			return true
		}
	}
	return false
}
