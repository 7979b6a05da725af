//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// crossing measures what calls cost: testdata/crossing.c. No verdict hangs on it.
func (l Library) crossing(t *testing.T) {
	p := l.compiled(t, "crossing")
	t.Logf("%s", p.out.String())
}

// signals is testdata/signals.c: no signal of the library's interrupts a program.
func (l Library) signals(t *testing.T) {
	l.compiled(t, "signals")
}

// handlers is testdata/handlers.c: the program's own handlers of signals have room.
func (l Library) handlers(t *testing.T) {
	p := l.compiled(t, "handlers")
	t.Logf("%s", p.out.String())
}

// stacks is testdata/stacks.c: handlers of the program's have as much room as on the program's own stack, and overwrite
// nothing.
func (l Library) stacks(t *testing.T) {
	p := l.compiled(t, "stacks", pair...)
	t.Logf("%s", p.out.String())
}

// extended is testdata/extended.c: two QPs of one process that connect by themselves, with the extended verbs.
func (l Library) extended(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "extended")
}

// shared is testdata/shared.c: threads share an extended Completion Queue.
func (l Library) shared(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "shared", pair...)
}

// threads is testdata/threads.c: threads share a QP, an SRQ and a CQ.
func (l Library) threads(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "threads", pair...)
}

// starved is testdata/starved.c: threads that ask for events keep no other from its turn.
func (l Library) starved(t *testing.T) { l.compiled(t, "starved", pair...) }

// alone is testdata/alone.c: a thread that polls does not keep the only processor from what it waits for.
func (l Library) alone(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	t.Setenv("GOMAXPROCS", "1")
	p := l.compiled(t, "alone", pair...)
	t.Logf("%s", p.out.String())
}

// gids is testdata/gids.c: an address keeps the index of its GID, and there are files about it.
func (l Library) gids(t *testing.T) {
	for _, as := range []Guise{IWARP, RoCE} {
		t.Setenv(guiseVariable, string(as))
		if p := l.compiledWith(t, "gids", nil, append(pair,
			"-D_GNU_SOURCE")...); !strings.Contains(p.out.String(), "gids: ok") {
			testrig.Lacks(t, p.out.String())
		}
	}
}

// windows is testdata/windows.c: Memory Windows, and regions that are registered again.
func (l Library) windows(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "windows", pair...)
}

// vanishes is testdata/vanish.c: memory that is unmapped while it is registered.
func (l Library) vanishes(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "vanish", pair...)
}

// forks is testdata/fork.c: children that use verbs after their parents did.
func (l Library) forks(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "fork", pair...)
}

// inherits is testdata/inherited.c: channels and contexts of before a fork.
func (l Library) inherits(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "inherited", pair...)
}

// managed is testdata/managed.c, in both guises: a connection of librdmacm's.
func (l Library) managed(t *testing.T) {
	for _, as := range []Guise{IWARP, RoCE} {
		t.Run(string(as), func(t *testing.T) {
			t.Setenv(guiseVariable, string(as))
			l.compiled(t, "managed", pair...)
		})
	}
}

// delivered is testdata/delivered.c: events that come while what they are about is destroyed.
func (l Library) delivered(t *testing.T) { l.compiled(t, "delivered") }

// givenUp is testdata/given_up.c: rdma_disconnect of what has no connection.
func (l Library) givenUp(t *testing.T) { l.compiled(t, "given_up") }

// pair is for programs that begin with testdata/pair.h.
var pair = []string{"-include", "testdata/pair.h"}

// compiled runs a program of testdata, which must succeed.
func (l Library) compiled(t *testing.T, name string, options ...string) *process {
	t.Helper()
	return l.compiledWith(t, name, nil, options...)
}

// compiledWith is compiled for a program with arguments.
func (l Library) compiledWith(t *testing.T, name string, arguments []string, options ...string) *process {
	t.Helper()
	p := start(t, l, strings.Join(append([]string{l.program(t, name, options...)}, arguments...), " "))
	p.awaitSuccess(t)
	return p
}

// program compiles a program of testdata.
func (l Library) program(t *testing.T, name string, options ...string) (binary string) {
	t.Helper()
	compiler, err := findCompiler()
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(t.TempDir(), name)
	source := filepath.Join("testdata", name+".c")
	args := slices.Concat(compiler[1:], []string{"-O2", "-Wall"}, options)
	if err := run(exec.CommandContext(t.Context(), compiler[0],
		append(args, "-o", binary, source, "-libverbs", "-lrdmacm", "-lpthread")...)); err != nil {
		t.Fatal(err)
	}
	return binary
}
