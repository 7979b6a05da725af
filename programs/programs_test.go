package programs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestEnvironment puts the library in front of what is preloaded already, once, and has tools that check a program bear
// with it.
func TestEnvironment(t *testing.T) {
	l := Library{t.TempDir()}
	preload := "LD_PRELOAD=" + l.Preload()
	for _, c := range []struct{ given, want string }{
		{"HOME=/", preload},
		{"LD_PRELOAD=", preload},
		{"LD_PRELOAD=other.so", preload + ":other.so"},
		{"LD_PRELOAD=a.so:" + l.Preload(), "LD_PRELOAD=a.so:" + l.Preload()},
		{"HOME=/", "ASAN_OPTIONS=verify_asan_link_order=0"},
		{"ASAN_OPTIONS=detect_leaks=0", "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"},
		{"TSAN_OPTIONS=ignore_noninstrumented_modules=1", "TSAN_OPTIONS=ignore_noninstrumented_modules=1"},
	} {
		given := []string{c.given, "A=B"}
		before := slices.Clone(given)
		if got := l.Environment(given); !slices.Contains(got, c.want) || !slices.Contains(got, "A=B") {
			t.Errorf("%s: %q", c.given, got)
		}
		if !slices.Equal(before, given) {
			t.Errorf("%s was changed", c.given)
		}
	}
}

// TestSuppressions names valgrind's file where it is there, before the user's own options.
func TestSuppressions(t *testing.T) {
	l := Library{t.TempDir()}
	given := []string{"VALGRIND_OPTS=-q"}
	if got := l.Environment(given); !slices.Contains(got, given[0]) {
		t.Errorf("without the file: %q", got)
	}
	if err := l.writeSuppressions(); err != nil {
		t.Fatal(err)
	}
	if got := l.Environment(given); !slices.Contains(got, "VALGRIND_OPTS=--suppressions="+l.suppressions()+" -q") {
		t.Errorf("with it: %q", got)
	}
}

// TestLibraryOf has a place for each version, or the one that the user names.
func TestLibraryOf(t *testing.T) {
	if err := checkSystem(); err != nil {
		t.Skip(err)
	}
	t.Setenv("IWARP_LIBRARY", "")
	t.Setenv("XDG_CACHE_HOME", filepath.FromSlash("/cache"))
	one, err := LibraryOf("v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := LibraryOf("(devel)"); other == one || one.built() {
		t.Errorf("%v and %v", one, other)
	}
	for _, home := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData", "home"} {
		t.Setenv(home, "")
	}
	if _, err := LibraryOf("v1.0.0"); err == nil || !strings.Contains(err.Error(), "IWARP_LIBRARY") {
		t.Errorf("without a home: %v", err)
	}
	t.Setenv("IWARP_LIBRARY", "a relative name")
	if relative, err := LibraryOf("v1.0.0"); err != nil || !filepath.IsAbs(relative.Dir) ||
		filepath.Base(relative.Dir) != "a relative name" {
		t.Errorf("%v: %v", relative, err)
	}
	dir := t.TempDir()
	t.Setenv("IWARP_LIBRARY", dir)
	named, err := LibraryOf("v1.0.0")
	if err != nil || named.Dir != dir || named.built() {
		t.Errorf("%v: %v", named, err)
	}
	for _, name := range []string{named.Preload(), named.Engine()} {
		if named.built() {
			t.Errorf("built before %s", name)
		}
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if !named.built() {
		t.Error("not built")
	}
}

// TestCheckouts: two checkouts have a library each, and a released version has the same one in all.
func TestCheckouts(t *testing.T) {
	if err := checkSystem(); err != nil {
		t.Skip(err)
	}
	t.Setenv("IWARP_LIBRARY", "")
	in := func(dir, version string) Library {
		t.Helper()
		t.Chdir(dir)
		l, err := LibraryOf(version)
		testrig.Must(t, err)
		return l
	}
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		testrig.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+module+"\n"), 0o666))
		testrig.Must(t, os.Mkdir(filepath.Join(dir, "below"), 0o777))
	}
	if a, b := in(one, "(devel)"), in(two, "(devel)"); a == b || a != in(filepath.Join(one, "below"), "(devel)") {
		t.Errorf("%v and %v", a, b)
	}
	if a, b := in(one, "v1.0.0"), in(two, "v1.0.0"); a != b {
		t.Errorf("%v and %v", a, b)
	}
}

// TestPlace refuses a library that the dynamic linker would not find.
func TestPlace(t *testing.T) {
	if checkSystem() != nil {
		t.Skip("no system for programs, whose paths may have colons")
	}
	for name, usable := range map[string]bool{"library": true, "a library": false, "a:library": false} {
		l := Library{filepath.Join(t.TempDir(), name)}
		if err := l.Check(); (err == nil) != usable {
			t.Errorf("%q: %v", name, err)
		}
		if usable {
			continue
		}
		for what, err := range map[string]error{"Build": l.Build(t.Context(), "(devel)"),
			"Exec": l.Exec([]string{"true"}, "")} {
			if place := new(PlaceError); !errors.As(err, &place) || place.Dir != l.Dir {
				t.Errorf("%s in %q: %v", what, name, err)
			}
		}
	}
}

// TestMissing says what is missing to build the library, and how to get it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "no-such-compiler")
	l := Library{filepath.Join(t.TempDir(), "library")}
	err := l.Build(t.Context(), "(devel)")
	if no := checkSystem(); no != nil { // where it cannot be built at all, that is said
		if err == nil || err.Error() != no.Error() {
			t.Errorf("%v, want %v", err, no)
		}
		return
	}
	var missing *NeedError
	if !errors.As(err, &missing) || missing.Need.Found != "" || !strings.Contains(err.Error(), missing.Need.How) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(l.Dir); err == nil {
		t.Error("a directory was made for nothing")
	}
	for _, n := range Needs(t.Context(), "(devel)") {
		if source := strings.HasPrefix(n.What, "the source code"); (n.Found != "") != source {
			t.Errorf("in an empty PATH: %v", n)
		}
	}
}

// TestCompiler takes arguments from CC, as make and go do, and says of one that is not there that it was CC.
func TestCompiler(t *testing.T) {
	t.Setenv("CC", "go version")
	if command, err := findCompiler(); err != nil || len(command) != 2 || !filepath.IsAbs(command[0]) ||
		command[1] != "version" {
		t.Errorf("%q, %v", command, err)
	}
	t.Setenv("CC", "no-such-compiler -m64")
	for _, n := range Needs(t.Context(), "(devel)") {
		if n.What == "a C compiler" && (n.Found != "" || !strings.HasPrefix(n.How, `CC is "no-such-compiler -m64": `)) {
			t.Errorf("%+v", n)
		}
	}
}

// TestHeaders finds each header by itself, and says what a compiler says that fails.
func TestHeaders(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"alone.h": "", "needy.h": "#include <no/such.h>\n"} {
		testrig.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666))
	}
	compiler, err := findCompiler()
	if err != nil {
		t.Skip(err)
	}
	for name, found := range map[string]bool{"alone.h": true, "needy.h": true, "no/such.h": false} {
		n := needHeader(t.Context(), append(compiler, "-I", dir), name, "some-dev")
		if (n.Found == filepath.Join(dir, name)) != found || n.How != "apt-get install some-dev" {
			t.Errorf("%+v", n)
		}
	}
	if n := needHeader(t.Context(), append(compiler, "-no-such-option"), "alone.h", "some-dev"); n.Found != "" ||
		!strings.Contains(n.How, "no-such-option") {
		t.Errorf("%+v", n)
	}
}

// TestNoProgram fails before the process is given up.
func TestNoProgram(t *testing.T) {
	if err := (Library{t.TempDir()}).Exec([]string{"no-such-program"}, ""); err == nil {
		t.Error("a program that does not exist runs")
	}
}

// TestGuise puts a guise into the environment only if the user wants one: one that is chosen for a program is not that
// of others.
func TestGuise(t *testing.T) {
	l := Library{"/lib"}
	for _, tt := range []struct {
		environment string
		as          Guise
		want        []string
	}{
		{"A=B", "", nil},
		{"A=B", RoCE, []string{"IWARP_AS=roce"}},
		{"IWARP_AS=iwarp", "", []string{"IWARP_AS=iwarp"}},
		{"IWARP_AS=iwarp", RoCE, []string{"IWARP_AS=roce"}},
		{"IWARP_AS=", IWARP, []string{"IWARP_AS=iwarp"}},
	} {
		got := l.environmentAs([]string{tt.environment}, tt.as)
		got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, guiseVariable) })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s as %q: %q", tt.environment, tt.as, got)
		}
	}
}

// TestStale tells a library of other sources than are there from one of these.
func TestStale(t *testing.T) {
	l := Library{t.TempDir()}
	for _, name := range []string{l.Preload(), l.Engine()} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	stamped := func(digest string) State {
		if err := os.WriteFile(filepath.Join(l.Dir, stampName), []byte(digest+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		return l.State(t.Context(), "(devel)")
	}
	now := stamped("other").Now
	if s := stamped("other"); !s.Stale() || s.Unknown() || s.From != "other" {
		t.Errorf("%+v", s)
	}
	if s := stamped(now); s.Stale() || s.Unknown() || !s.Built {
		t.Errorf("%+v", s)
	}
	if s := stamped(""); !s.Stale() {
		t.Errorf("without a stamp: %+v", s)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", "")
	if s := stamped("other"); s.Stale() || !s.Unknown() {
		t.Errorf("where there is no Go: %+v", s)
	}
	t.Setenv("PATH", path)
	t.Chdir(t.TempDir())
	if s := stamped("other"); s.Stale() || !s.Unknown() {
		t.Errorf("where there are no sources: %+v", s)
	}
	for version, unknown := range map[string]bool{"v1.2.3": false, "v1.2.3+dirty": true,
		"v0.0.0-20261123000000-0123456789ab": true} {
		if s := l.State(t.Context(), version); s.Unknown() != unknown || s.Stale() || s.Failed != nil {
			t.Errorf("%s: %+v", version, s)
		}
	}
}

// TestNoCache: where Go has no place to write, a library that is there can be used, and one that is not there cannot be
// built; which variables name a place is said.
func TestNoCache(t *testing.T) {
	l := Library{t.TempDir()}
	if checkSystem() != nil {
		t.Skip("no system for programs")
	}
	file := filepath.Join(t.TempDir(), "file")
	testrig.Must(t, os.WriteFile(file, nil, 0o666))
	t.Setenv("GOCACHE", filepath.Join(file, "cache"))
	err := l.Build(t.Context(), "(devel)")
	if missing := new(NeedError); errors.As(err, &missing) {
		testrig.Lacks(t, err.Error())
	}
	for _, says := range []string{"Go's build cache cannot be written in " + file, "GOCACHE, XDG_CACHE_HOME or HOME"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	for _, name := range []string{l.Preload(), l.Engine()} {
		testrig.Must(t, os.WriteFile(name, nil, 0o666))
	}
	if s := l.State(t.Context(), "(devel)"); !s.Unknown() || s.Stale() || s.Failed == nil {
		t.Errorf("%+v", s)
	}
	if _, err := (Library{filepath.Join(file, "library")}).Plan(t.Context(), "(devel)"); err == nil ||
		!strings.Contains(err.Error(), "IWARP_LIBRARY") {
		t.Errorf("a library below a file: %v", err)
	}
}

// TestDigest has a digest that changes with the name and the bytes of any source of the engine and of the part in C,
// and with nothing else.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for _, tt := range []struct {
		name, bytes string
		fresh       bool
	}{
		{"go.mod", "module x", true},
		{"programs/engine/main.go", "package main\nimport _ \"x/b\"", true},
		{"b/a.go", "package b", true},
		{"b/a.go", "package b // y", true},
		{"b/a.go", "package b", false},
		{"b/b.go", "package b", true},
		{"b/c.h", "", true},
		{"programs/preload/c.h", "", true},
		{"programs/preload/d.c", "", true},
		{"programs/engine/b_test.go", "package main", false},
		{"programs/preload/testdata/e.c", "", false},
		{"mine.go", "package mine", false},
		{"scratch/mine.c", "", false},
		{"README.md", "", false},
		{"b/b.go", "package", true}, // which the build complains about
	} {
		name := filepath.Join(dir, filepath.FromSlash(tt.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(tt.bytes), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := digest(t.Context(), dir)
		if err != nil || seen[got] == tt.fresh {
			t.Errorf("%s: %s, which is new: %v; %v", tt.name, got, !seen[got], err)
		}
		seen[got] = true
	}
}
