package programs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/goiwarp/iwarp"

// A Need is something that Build needs.
type Need struct {
	What  string // such as "infiniband/verbs.h"
	Found string // where it is, or "" if it is missing
	How   string // to get it
}

// Needs returns what Build needs, in the environment as it is.
func Needs(ctx context.Context, version string) []Need {
	compiler, noCompiler := findCompiler()
	howCompiler := "apt-get install gcc libc6-dev"
	if noCompiler != nil && os.Getenv("CC") != "" {
		howCompiler = fmt.Sprintf("CC is %q: %v", os.Getenv("CC"), errors.Unwrap(noCompiler))
	}
	goCommand, noGo := exec.LookPath("go")
	howSources := "run in a checkout, or install a release"
	if noGo != nil {
		howSources = "that is not known without Go"
	}
	sources, _ := findSources(ctx, version)
	return []Need{
		{"Go", goCommand, "go.dev/dl"},
		{"the source code of iwarp", sources, howSources},
		{"a C compiler", strings.Join(compiler, " "), howCompiler},
		needHeader(ctx, compiler, "stdlib.h", "libc6-dev"),
		needHeader(ctx, compiler, "infiniband/verbs.h", "libibverbs-dev"),
		needHeader(ctx, compiler, "rdma/rdma_cma.h", "librdmacm-dev"),
	}
}

// A NeedError is what Build returns when something is missing that it needs.
type NeedError struct{ Need Need }

// Error says what is missing, and how to get it.
func (e *NeedError) Error() string {
	return fmt.Sprintf("the library for programs cannot be built: %s is missing (%s)", e.Need.What, e.Need.How)
}

// findCompiler returns the compiler's command: CC, which may have arguments, or one that is there.
func findCompiler() (command []string, err error) {
	commands := [][]string{{"cc"}, {"gcc"}, {"clang"}}
	if cc := strings.Fields(os.Getenv("CC")); len(cc) > 0 {
		commands = [][]string{cc}
	}
	for _, command = range commands {
		var path string
		if path, err = exec.LookPath(command[0]); err == nil {
			return append([]string{path}, command[1:]...), nil
		}
	}
	return nil, err
}

// needHeader is a header, of a package of Debian. If the compiler fails, which is not about the header, it says why.
func needHeader(ctx context.Context, compiler []string, name, pkg string) Need {
	n := Need{What: name, How: "apt-get install " + pkg}
	if compiler == nil {
		return n
	}
	found, err := findHeader(ctx, compiler, name)
	if err != nil {
		n.How = fmt.Sprintf("the C compiler fails: %v", err)
	}
	n.Found = found
	return n
}

// findHeader has the compiler look for a header. Others that it includes may be missing (-MG).
func findHeader(ctx context.Context, compiler []string, name string) (string, error) {
	cmd := exec.CommandContext(ctx, compiler[0], slices.Concat(compiler[1:], []string{"-M", "-MG", "-x", "c", "-"})...)
	cmd.Stdin = strings.NewReader("#include <" + name + ">\n")
	out, err := cmd.Output()
	if err != nil {
		return "", said(err)
	}
	for _, file := range strings.Fields(string(out)) {
		if filepath.IsAbs(file) && strings.HasSuffix(file, "/"+name) {
			return file, nil
		}
	}
	return "", nil
}

// said returns the error of a command with the first line that it wrote to standard error.
func said(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
	return fmt.Errorf("%w: %s", err, line)
}

// findCheckout returns the directory of this module, if one is in it, or in a module that uses it.
func findCheckout(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return checkoutAbove(".")
	}
	dir := strings.TrimSpace(string(out))
	if err == nil && dir == "" {
		err = fmt.Errorf("%s is not in a module that has it", module)
	}
	return dir, err
}

// checkoutAbove is for where there is no Go to ask: it looks for the checkout that a directory is in.
func checkoutAbove(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), "module "+module) {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", fmt.Errorf("there is no checkout of %s here", module)
		}
		dir = above
	}
}

// findSources returns the directory of this module: of a checkout that one is in, or else what the module proxy has of
// the version.
func findSources(ctx context.Context, version string) (string, error) {
	if dir, err := findCheckout(ctx); err == nil {
		return dir, nil
	}
	if !strings.HasPrefix(version, "v") {
		return "", fmt.Errorf("there are no sources of version %s", version)
	}
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	err = json.Unmarshal(out, &m)
	return m.Dir, err
}

// Build builds the library of a version of this module. If something is missing for that, the error is a *NeedError.
func (l Library) Build(ctx context.Context, version string) error {
	p, err := l.Plan(ctx, version)
	if err != nil {
		return err
	}
	return p.Build(ctx)
}

// A Plan is a Library that can be built, as far as can be told before.
type Plan struct {
	library       Library
	sources, from string
}

// Plan looks for all that Build needs.
func (l Library) Plan(ctx context.Context, version string) (p Plan, err error) {
	if err := cmp.Or(checkSystem(), l.Check()); err != nil {
		return p, err
	}
	if l.isShipped() {
		return p, l.shippedError()
	}
	for _, n := range Needs(ctx, version) {
		if n.Found == "" {
			return p, &NeedError{n}
		}
	}
	if err := l.place().check(); err != nil {
		return p, err
	}
	p.library = l
	if p.sources, err = findSources(ctx, version); err != nil {
		return p, err
	}
	if p.from, err = digest(ctx, p.sources); err != nil {
		return p, l.explain(ctx, err)
	}
	return p, nil
}

// Build builds the library.
func (p Plan) Build(ctx context.Context) error {
	if err := os.MkdirAll(p.library.Dir, 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(p.library.Dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := (Library{fresh}).compile(ctx, p.sources, p.from); err != nil {
		return p.library.explain(ctx, err)
	}
	if err := (Library{fresh}).setModes(); err != nil {
		return err
	}
	return p.library.moveFrom(Library{fresh})
}

// setModes has all read what was built, and its owner alone write it, whatever the umask is.
func (l Library) setModes() error {
	for file, mode := range map[string]os.FileMode{l.Engine(): 0o755, l.Preload(): 0o755, l.suppressions(): 0o644,
		filepath.Join(l.Dir, stampName): 0o644} {
		if err := os.Chmod(file, mode); err != nil {
			return err
		}
	}
	return nil
}

// moveFrom moves what was built to its place: the engine first, which the other loads, and last what they were built
// from. A program that runs goes on with what it has loaded.
func (l Library) moveFrom(from Library) error {
	if err := os.Rename(from.Engine(), l.Engine()); err != nil {
		return err
	}
	if err := os.Rename(from.Preload(), l.Preload()); err != nil {
		return err
	}
	if err := os.Rename(from.suppressions(), l.suppressions()); err != nil {
		return err
	}
	return os.Rename(filepath.Join(from.Dir, stampName), filepath.Join(l.Dir, stampName))
}

// The engine's runtime must not preempt by signals (asyncpreemptoff, which has no directive for a source file): they
// reach the program's own threads, whose poll, and every other call that is never restarted (signal(7)), would fail
// with EINTR without a signal of the program's.
const withoutSignals = "-X runtime.godebugDefault=asyncpreemptoff=1"

func (l Library) compile(ctx context.Context, sources, from string) error {
	if err := os.WriteFile(filepath.Join(l.Dir, stampName), []byte(from+"\n"), 0o666); err != nil {
		return err
	}
	if err := l.writeSuppressions(); err != nil {
		return err
	}
	// Without the go command's own number of the build, which also depends on the compiler's command line.
	build := exec.CommandContext(ctx, "go", "build", "-C", sources, "-tags", "interposer", "-buildmode=c-shared",
		"-ldflags", withoutSignals+" -buildid= -X main.sources="+short(from), "-o", l.Engine(), "./programs/engine")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if err := run(build); err != nil {
		return err
	}
	return l.compilePreload(ctx, sources, from)
}

// short is how much of a digest the two libraries know each other by: 64 bits.
func short(digest string) string { return digest[:16] }

// compilePreload compiles the part in C, with more options for the compiler. The place of the sources is left out of
// what debuggers read, so that the same sources give the same bytes anywhere.
func (l Library) compilePreload(ctx context.Context, sources, from string, options ...string) error {
	files, err := filepath.Glob(filepath.Join(sources, "programs", "preload", "*.c"))
	if err != nil {
		return err
	}
	compiler, err := findCompiler()
	if err != nil {
		return err
	}
	args := append(slices.Concat(compiler[1:], options),
		"-std=gnu11", "-O2", "-g", "-fdebug-prefix-map="+sources+"=.", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fPIC",
		"-fvisibility=hidden", "-D_GNU_SOURCE",
		"-DIWARP_SOURCES=0x"+short(from)+"ull", "-shared", "-o", l.Preload(),
	)
	return run(exec.CommandContext(ctx, compiler[0], slices.Concat(args, files, []string{"-ldl", "-lpthread"})...))
}

// run runs a command whose output belongs to the error.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:2], " "), err, out)
	}
	return nil
}
