package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A binary is a test binary with all mutants in it.
type binary struct {
	path, dir, trace string
	flags            []string
	quick            bool                     // slow tests judge no change that quicker ones reach
	reached          map[int][]string         // the tests that reach a mutant
	took             map[string]time.Duration // and their times
	noticed          map[string]int           // how many mutants a test has noticed
}

// build compiles the tests of a directory with the overlay.
func build(tmp, overlay, dir string) (*binary, error) {
	b := &binary{path: filepath.Join(tmp, "tests"), dir: dir, trace: filepath.Join(tmp, "trace"),
		reached: map[int][]string{}, took: map[string]time.Duration{}, noticed: map[string]int{}}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, "./"+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	// A failing property is not searched for its smallest case, and writes no file.
	if rapid := []string{"-rapid.nofailfile", "-rapid.shrinktime=0s"}; exec.Command(b.path,
		append(rapid, "-test.list=^$")...).Run() == nil {
		b.flags = rapid
	}
	return b, nil
}

// failed finds the test that has failed, or that was running when time was over.
var failed = regexp.MustCompile(`(?m)^(?:--- FAIL: |\t)(Test\w+)`)

// memory bounds a mutant that allocates without end, in KiB of address space.
const memory = "8000000"

// run runs tests, within limit, with one variable more in the environment.
func (b *binary) run(tests []string, limit time.Duration, env string) (output string, err error) {
	// if the test binary does not end by itself
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Second)
	defer cancel()
	args := append([]string{"-c", "ulimit -v " + memory + `; exec "$0" "$@"`, b.path,
		"-test.failfast", "-test.timeout=" + limit.String(),
		"-test.run=^(" + strings.Join(tests, "|") + ")$"}, b.flags...)
	cmd := exec.CommandContext(ctx, "bash", args...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "time is over", err
	}
	return string(out), err
}

// observe runs each test once and notes what it reaches.
func (b *binary) observe() error {
	list, err := exec.Command(b.path, "-test.list=.").Output()
	if err != nil {
		return err
	}
	for _, test := range strings.Fields(string(list)) {
		if strings.HasPrefix(test, "Benchmark") {
			continue
		}
		begun := time.Now()
		if err := os.WriteFile(b.trace, nil, 0o600); err != nil {
			return err
		}
		env := "MUTANT_TRACE=" + b.trace
		out, err := b.run([]string{test}, time.Minute, env)
		if err != nil { // perhaps because the machine is busy
			out, err = b.run([]string{test}, time.Minute, env)
		}
		if err != nil {
			return fmt.Errorf("%s fails without a mutant: %w\n%s", test, err, out)
		}
		b.took[test] = time.Since(begun)
		trace, err := os.ReadFile(b.trace)
		if err != nil {
			return err
		}
		for _, line := range strings.Fields(string(trace)) {
			id, _ := strconv.Atoi(line)
			b.reached[id] = append(b.reached[id], test)
		}
	}
	return nil
}

// kills reports whether a test fails with the mutant, and how. Those that have noticed the most
// come first, and then the quickest, some at a time. One that fails has to fail twice: a
// busy machine kills no mutant.
func (b *binary) kills(id int) (output string, killed bool) {
	tests := slices.SortedFunc(slices.Values(b.judges(id)), func(x, y string) int {
		return cmp.Or(b.noticed[y]-b.noticed[x], int(b.took[x]-b.took[y]))
	})
	env := "MUTANT=" + strconv.Itoa(id)
	for len(tests) > 0 {
		n, limit := b.some(tests)
		out, err := b.run(tests[:n], limit, env)
		if err == nil {
			tests = tests[n:]
			continue
		}
		again := tests[:n]
		if f := failed.FindStringSubmatch(out); f != nil && slices.Contains(again, f[1]) {
			again = []string{f[1]}
			if strings.HasPrefix(f[0], "---") { // one that stands still takes its time
				b.noticed[f[1]]++
			}
		}
		_, limit = b.some(again)
		if out, err = b.run(again, limit, env); err != nil {
			return out, true
		}
		tests = slices.DeleteFunc(tests, func(t string) bool { return slices.Contains(again, t) })
	}
	return "", false
}

// slow is a test that judges no change which quicker ones reach, in a quick run. A survivor of such a run may be one
// that only slow tests would notice.
const slow = 500 * time.Millisecond

// judges returns the tests that judge a mutant.
func (b *binary) judges(id int) []string {
	all := b.reached[id]
	few := slices.DeleteFunc(slices.Clone(all), func(t string) bool { return b.took[t] > slow })
	if !b.quick || len(few) == 0 {
		return all
	}
	return few
}

// atOnce is how long tests take that run in one process, so that one which stands still is
// noticed soon.
const atOnce = time.Second

// some returns how many of the tests to run next, and how much time they may take.
func (b *binary) some(tests []string) (n int, limit time.Duration) {
	took := time.Duration(0)
	for n < len(tests) && (n == 0 || took+b.took[tests[n]] < atOnce) {
		took += b.took[tests[n]]
		n++
	}
	return n, 5*time.Second + 4*took
}
