package housecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/goiwarp/iwarp"

// mayImport says which packages of the module each package may import, by paths
// within the module; "" is the package iwarp. Every package has a row, and a new one
// gets its row in the change that brings it.
var mayImport = map[string][]string{
	// The protocols: no I/O.
	"internal/crc32c":   {},
	"internal/layout":   {"internal/crc32c"},
	"mpa":               {"internal/layout", "internal/crc32c", "internal/wording"},
	"internal/recovery": {"mpa", "internal/layout", "internal/crc32c", "internal/wording"},
	"internal/ulpdata":  {"mpa", "internal/wording"},
	"ddp":               {},
	"rdmap":             {"mpa", "ddp", "internal/ring", "internal/wording"},
	"internal/ring":     {},
	"sctp":              {"mpa"},
	"internal/chunk":    {"internal/crc32c"},

	// What they and all others say numbers with, as pure.
	"internal/wording": {},

	// What is known of other implementations.
	"internal/peers": {"mpa", "internal/ulpdata"},

	// The endpoint.
	"internal/memory":     {"ddp", "internal/layout", "internal/stags"},
	"internal/stags":      {},
	"internal/lowerlayer": {"internal/deadline"},
	"internal/neterr":     {},
	"internal/deadline":   {},
	"internal/admission":  {"internal/engine", "internal/tcp", "internal/wording", "mpa"},
	"internal/spin":       {},
	"internal/tcp":        {"internal/lowerlayer", "internal/spin"},
	"internal/startup":    {"mpa", "internal/deadline", "internal/neterr", "internal/tcp"},

	// DDP over SCTP: the carrier, and what drives the machine of package sctp over it.
	"internal/sctpkernel":  {"sctp", "internal/chunk", "internal/lowerlayer"},
	"internal/sctpudp":     {"sctp", "internal/chunk", "internal/lowerlayer"},
	"internal/association": {"", "mpa", "sctp", "internal/lowerlayer", "internal/deadline"},
	"iwarpsctp": {"", "mpa", "sctp", "internal/association", "internal/lowerlayer", "internal/deadline",
		"internal/engine", "internal/sctpkernel", "internal/sctpudp"},

	"internal/driver": {"mpa", "internal/lowerlayer", "internal/deadline", "internal/engine", "internal/layout",
		"internal/memory", "internal/reclaim", "internal/tcp"},
	"internal/reclaim":   {},
	"internal/emulation": {},

	"internal/engine": {"mpa", "internal/layout", "internal/recovery", "ddp", "rdmap", "internal/memory",
		"internal/wording", "internal/ring"},
	"": {"ddp", "mpa", "internal/layout", "internal/ulpdata", "rdmap", "internal/memory", "internal/ring",
		"internal/lowerlayer", "internal/tcp", "internal/deadline", "internal/driver", "internal/emulation",
		"internal/engine", "internal/admission", "internal/reclaim", "internal/startup",
		"internal/peers", "internal/wording"},

	// A TCP that is aware of MPA, for programs that want one.
	"usertcp": {"internal/lowerlayer"},
	"internal/oooexperiment": {"", "mpa", "internal/layout", "internal/recovery", "internal/report",
		"internal/quantile", "usertcp"},

	// Streams of bytes over a QP, and the protocol of that, which does no I/O.
	"internal/rsockets": {"ddp"},
	"stream":            {"", "ddp", "mpa", "internal/inbox", "internal/admission", "internal/rsockets"},

	// NVMe over RDMA, whose formats do no I/O.
	"internal/capsule": {},
	"nvmf/host":        {"internal/deadline", "", "internal/inbox", "internal/ulpdata", "internal/capsule"},
	"nvmf/target": {"", "internal/filelock", "internal/admission", "internal/inbox", "mpa",
		"internal/ulpdata", "internal/capsule"},

	// Programs on the public API.
	"internal/network": {"", "mpa", "sctp", "internal/script", "iwarpsctp", "usertcp"},
	"perf": {"", "mpa", "internal/engine", "internal/ulpdata", "internal/admission", "internal/procstat",
		"internal/network", "internal/quantile", "internal/wording"},
	"internal/rping":   {"", "mpa", "internal/admission", "internal/rping/message"},
	"internal/demo":    {"", "mpa", "rdmap", "internal/procstat"},
	"internal/inbox":   {""},
	"internal/sparse":  {},
	"internal/serve":   {"", "internal/admission", "internal/sparse"},
	"internal/monitor": {"internal/serve", "internal/sparse", "metrics", "nvmf/target"},
	"internal/manual":  {"internal/wording"},
	"metrics":          {"", "rdmap", "sctp"},
	"credits":          {"", "internal/deadline"},
	"notify":           {""},
	"internal/matrix": {"", "mpa", "ddp", "rdmap", "sctp", "internal/chunk", "internal/network", "internal/report",
		"internal/wording", "internal/script"},

	// Files between hosts, and what the two ends say to each other, which does no I/O.
	"internal/transfer/message": {},
	"internal/filelock":         {},
	"internal/transfer": {"", "mpa", "internal/filelock", "internal/inbox", "internal/admission",
		"internal/transfer/message"},

	// Programs to learn from.
	"examples/flag":      {"", "mpa"},
	"examples/kv":        {"", "mpa", "credits"},
	"examples/queue":     {"", "mpa", "credits"},
	"examples/twolayers": {"", "mpa", "iwarpsctp"},
	"examples/web":       {"stream"},

	// Strangers to the endpoint: they judge peers, or what passed between others, by the
	// protocols' codecs alone.
	"conform": {"mpa", "internal/layout", "ddp", "rdmap", "sctp", "internal/chunk", "capture",
		"internal/peers", "internal/tcp", "internal/report", "internal/wording", "internal/script",
		"internal/rping/message", "conform/peer"},
	"internal/probe": {"mpa", "internal/layout", "internal/ulpdata", "ddp", "rdmap", "sctp", "internal/chunk",
		"capture", "internal/peers", "internal/report", "internal/script", "internal/wording"},
	"internal/peersim": {"mpa", "internal/ulpdata", "ddp", "rdmap", "internal/peers", "internal/script"},
	"capture":          {"internal/chunk", "internal/lowerlayer", "internal/neterr", "internal/wording"},
	"internal/ulp":     {"internal/capsule", "internal/rping/message", "internal/rsockets", "internal/ulpdata", "internal/wording"},
	"capture/decode": {"mpa", "internal/layout", "internal/recovery", "internal/ulpdata", "ddp", "rdmap", "sctp",
		"capture", "internal/peers", "internal/ulp", "internal/wording"},
	"capture/export": {"capture", "capture/decode"},
	"capture/page":   {"rdmap", "capture", "capture/decode", "internal/htmlpage", "internal/wording"},

	// The peer that is played by hand: what others see of it, and its plumbing.
	"conform/peer":           {"mpa", "ddp", "rdmap", "internal/mempipe", "internal/script"},
	"internal/mempipe":       {},
	"internal/script":        {"mpa", "internal/layout", "ddp", "rdmap", "sctp", "internal/chunk", "internal/wording"},
	"internal/rping/message": {},

	// What a tool prints, and tests.
	"internal/report":       {"internal/htmlpage", "internal/wording"},
	"internal/htmlpage":     {"internal/wording"},
	"internal/terminal":     {},
	"internal/subprocess":   {},
	"internal/procstat":     {},
	"internal/live":         {"capture"},
	"internal/traffic":      {"rdmap", "capture", "capture/decode", "internal/wording"},
	"internal/where":        {"rdmap", "capture/decode", "internal/wording"},
	"internal/hostinfo":     {},
	"internal/pcapfile":     {"capture", "internal/filelock"},
	"internal/quantile":     {},
	"internal/testrig":      {"internal/mempipe"},
	"internal/e2e/startup":  {},
	"internal/e2e/endings":  {},
	"internal/e2e/sctp":     {},
	"internal/e2e/spinning": {},
	"internal/e2e/rig": {"", "mpa", "ddp", "rdmap", "sctp", "internal/association", "internal/engine",
		"internal/script", "internal/sctpudp", "internal/testrig", "iwarpsctp", "usertcp"},
	"internal/housecheck": {},
	"dist":                {},
	"interop":             {},

	// Unmodified programs of libibverbs and librdmacm.
	"programs":                   {},
	"internal/programs/settings": {"", "mpa", "capture", "internal/pcapfile", "internal/wording"},
	"internal/programs/datagram": {"internal/ulpdata"},
	"internal/programs/verbs": {"", "internal/emulation", "internal/stags", "mpa", "rdmap", "internal/ulpdata", "capture",
		"internal/filelock", "internal/pcapfile", "internal/admission", "internal/programs/datagram",
		"internal/programs/settings"},
	"programs/engine": {"internal/programs/datagram", "internal/programs/verbs"},
	"interop/align":   {},
	"cmd/iwarp": {
		"", "mpa", "internal/ulpdata", "capture", "capture/decode", "capture/export", "capture/page", "conform", "perf",
		"internal/demo", "internal/hostinfo", "internal/live", "internal/traffic", "internal/where", "internal/subprocess", "internal/manual", "internal/matrix", "internal/monitor", "internal/network",
		"internal/pcapfile", "internal/probe", "internal/admission", "internal/report", "internal/rping",
		"internal/serve", "internal/sparse", "internal/oooexperiment", "internal/terminal", "internal/transfer",
		"internal/transfer/message", "internal/wording",
		"programs", "internal/programs/settings", "stream", "internal/rsockets", "iwarpsctp", "usertcp",
		"internal/capsule", "nvmf/host", "nvmf/target",
	},
}

// pure are the packages that hold protocol and do nothing else, with all below them.
var pure = []string{"mpa", "ddp", "rdmap", "sctp", "internal/engine", "internal/crc32c", "internal/layout",
	"internal/recovery", "internal/ring", "internal/ulpdata", "internal/chunk", "internal/rsockets", "internal/capsule",
	"internal/rping/message", "internal/transfer/message", "internal/ulp", "internal/wording"}

// locking is as pure as those, but for the locks of its regions, and reads bytes of
// other types.
const locking = "internal/memory"

func isPure(pkg string) bool {
	return slices.ContainsFunc(pure, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// core are the packages that a program with package iwarp has in it: docs/architecture.md.
var core = []string{
	"", "mpa", "internal/crc32c", "internal/layout", "internal/recovery", "internal/ulpdata", "ddp",
	"rdmap", "internal/ring",
	"internal/lowerlayer", "internal/deadline", "internal/driver", "internal/emulation", "internal/engine",
	"internal/neterr", "internal/reclaim", "internal/memory", "internal/admission", "internal/peers",
	"internal/spin", "internal/stags", "internal/startup", "internal/tcp", "internal/wording",
}

// list has, for each package of the module, what it imports on any system, with any tags.
var list = sync.OnceValues(func() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-e", "-tags", "interop,interposer", "./...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1") // which all packages are for
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	imports := make(map[string][]string)
	for _, pkg := range strings.Fields(string(out)) {
		files, err := filesOf(inModule(pkg), parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		imports[inModule(pkg)] = importedBy(files)
	}
	return imports, nil
})

// filesOf returns the files of a package by their names, whatever their build constraints say, but for tests.
func filesOf(pkg string, mode parser.Mode) (map[string]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(filepath.FromSlash(pkg), "*.go"))
	files := make(map[string]*ast.File)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, mode|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files[name] = f
	}
	return files, err
}

// importedBy returns the import paths of files.
func importedBy(files map[string]*ast.File) (all []string) {
	for _, f := range files {
		for _, spec := range f.Imports {
			all = append(all, strings.Trim(spec.Path.Value, "\"`"))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func imports(t *testing.T) map[string][]string {
	t.Helper()
	all, err := list()
	if err != nil {
		if _, missing := exec.LookPath("go"); missing == nil {
			t.Fatal(err)
		}
		t.Skipf("no go command here: %v", err)
	}
	return all
}

// ofModule reports whether an import path is one of the module.
func ofModule(imp string) bool { return imp == module || strings.HasPrefix(imp, module+"/") }

// TestCore holds that the core is what a program that imports iwarp has of this module, and
// needs none of the tools.
func TestCore(t *testing.T) {
	for _, pkg := range core {
		for _, imp := range mayImport[pkg] {
			if !slices.Contains(core, imp) {
				t.Errorf("%q is of the core and may import %q, which is not", pkg, imp)
			}
		}
	}
	imports := imports(t)
	has := []string{""}
	for i := 0; i < len(has); i++ {
		for _, imp := range imports[has[i]] {
			if ofModule(imp) && !slices.Contains(has, inModule(imp)) {
				has = append(has, inModule(imp))
			}
		}
	}
	slices.Sort(has)
	if want := slices.Sorted(slices.Values(core)); !slices.Equal(has, want) {
		t.Errorf("the module's packages in a program that imports iwarp: %q, the core: %q", has, want)
	}
}

// forTests are the packages that only tests may import.
var forTests = []string{"internal/testrig", "internal/peersim", "internal/e2e/rig"}

// TestImports holds the direction in which the packages of the module depend on each
// other, and keeps the pure ones free of everything but the standard library. A package
// without a row in mayImport fails it, and so does a row without a package.
func TestImports(t *testing.T) {
	imports := imports(t)
	for pkg, all := range imports {
		if _, ok := mayImport[pkg]; !ok {
			t.Errorf("package %q has no row in mayImport: say what it may import", pkg)
			continue
		}
		for _, imp := range all {
			mayDo(t, pkg, imp)
		}
	}
	for pkg := range mayImport {
		if _, ok := imports[pkg]; !ok {
			t.Errorf("mayImport has a row for %q, which is no package", pkg)
		}
	}
}

// mayDo judges one import of a package.
func mayDo(t *testing.T, pkg, imp string) {
	t.Helper()
	switch {
	case ofModule(imp):
		to := inModule(imp)
		if !slices.Contains(mayImport[pkg], to) || slices.Contains(forTests, to) && !slices.Contains(forTests, pkg) {
			t.Errorf("%q imports %q", pkg, to)
		}
		if isPure(pkg) && !isPure(to) && to != locking {
			t.Errorf("%q is pure and imports %q, which is not", pkg, to)
		}
	case isPure(pkg) && !slices.Contains(pureImports, imp), pkg == locking &&
		!slices.Contains(slices.Concat(pureImports, lockImports), imp):
		t.Errorf("%s imports %s", pkg, imp)
	}
}

// pureImports is what the pure packages may import of the standard library: nothing with a clock of its own, as context
// has, or that reaches out, as log does. Of time they use values: see TestNoClock.
var pureImports = []string{
	"bytes", "cmp", "encoding/binary", "errors", "fmt", "hash/crc32", "iter", "maps", "math", "math/bits", "slices",
	"strconv", "strings", "time", "unicode", "unicode/utf8",
}

// lockImports is what internal/memory may have beside these: random STags, too, and accesses to memory that is gone,
// which it survives by debug.SetPanicOnFault.
var lockImports = []string{"crypto/rand", "runtime/debug", "sync", "sync/atomic", "unsafe"}

// inModule is an import path within the module.
func inModule(imp string) string {
	return strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
}

// TestPure holds that the linter, which says at once what a test says later, takes the same
// packages for pure.
func TestPure(t *testing.T) {
	settings, err := os.ReadFile(".golangci.yml")
	must(t, err)
	linted := func(rule string) (globs []string) {
		files := regexp.MustCompile(`\n        ` + rule + `:\n          files: \[(.*)\]`).FindSubmatch(settings)
		if files == nil {
			t.Fatalf(".golangci.yml has no rule %q", rule)
		}
		for _, glob := range regexp.MustCompile(`"\*\*/iwarp/([^"]*)/\*\.go"`).FindAllSubmatch(files[1], -1) {
			globs = append(globs, string(glob[1]))
		}
		return globs
	}
	for pkg := range mayImport {
		matches := func(glob string) bool { ok, _ := path.Match(glob, pkg); return ok }
		if got := slices.ContainsFunc(linted("pure"), matches); got != isPure(pkg) {
			t.Errorf("%q: pure is %v, and for the linter %v", pkg, isPure(pkg), got)
		}
		if got := slices.ContainsFunc(linted("memory"), matches); got != (pkg == locking) {
			t.Errorf("%q: for the linter memory is %v", pkg, got)
		}
	}
}

// TestAllFiles reads the files of other systems and tags, too.
func TestAllFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_windows.go": `package p; import "net"`, "b.go": "//go:build never\n\npackage p\n\nimport \"os\"\n",
		"c_test.go": `package p; import "log"`,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	files, err := filesOf(dir, parser.ImportsOnly)
	must(t, err)
	if got := importedBy(files); !slices.Equal(got, []string{"net", "os"}) {
		t.Errorf("%q", got)
	}
}
