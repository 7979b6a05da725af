// Command mutation changes one thing in a package at a time, runs the tests of the package with that, and prints the
// changes that no test has noticed.
//
//	go -C dev run ./mutation                             # the packages with protocol rules
//	go -C dev run ./mutation ddp rdmap                   # packages, by their directories
//	go -C dev run ./mutation internal/startup=internal/e2e/startup          # a package, judged by the tests of another
//	go -C dev run ./mutation internal/engine:read.go     # some files of a package
//
// It changes operators (< to <= and to >=, == to !=, && to ||, + to -, & to |, << to >>, ++ to --, and the other way
// round), takes the opposite of the condition of an if, and leaves out a statement that is a call. Constants and texts
// stay.
//
// All mutants of a package are compiled into one test binary, and the environment says which of
// them is alive. A first run notes which test reaches which mutant; only those tests judge it.
// The work tree is not changed: the mutants are an overlay of the go command.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

// protocol are the packages with protocol rules.
const protocol = "ddp rdmap mpa internal/layout=mpa internal/recovery internal/ulpdata internal/memory internal/engine " +
	"internal/startup=internal/e2e/startup"

type cli struct {
	Target  []string `arg:"" optional:"" placeholder:"DIR[:FILE,FILE...][=DIR]" help:"The package to change, some of its files, and the package whose tests judge them (default: ${protocol})."`
	Quick   bool     `help:"Leave out slow tests where quicker ones reach a change. A survivor may be one that only slow tests notice."`
	All     bool     `help:"Print also survivors of a kind that makes no difference."`
	Verbose bool     `help:"Print how each mutant dies."`
}

// errSurvived is that there are survivors, which have been printed.
var errSurvived = errors.New("some changes were noticed by no test")

func main() {
	var c cli
	const description = "Print changes of the code that no test notices. Paths are relative to the top of the repository."
	kong.Parse(&c, kong.Description(description), kong.Vars{"protocol": protocol})
	err := checkout.Enter()
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func (c *cli) run() error {
	targets, survived := c.Target, 0
	if len(targets) == 0 {
		targets = strings.Fields(protocol)
	}
	for _, target := range targets {
		n, err := c.judge(target)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		survived += n
	}
	if survived > 0 {
		return errSurvived
	}
	return nil
}

// judge tries the mutants of a target, prints the survivors, and returns their number without those of a kind that
// makes no difference.
func (c *cli) judge(target string) (int, error) {
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	p, b, names, err := prepare(tmp, target, c.Quick)
	if err != nil {
		return 0, err
	}
	survived, allowed := c.survivors(p, b, names)
	killed := len(p.mutants) - survived - total(allowed)
	fmt.Printf("%s: %d changes, %d killed, %d survived\n", target, len(p.mutants), killed, survived)
	for _, k := range slices.Sorted(maps.Keys(allowed)) {
		fmt.Printf("  and %d that make no difference: %s\n", allowed[k], k)
	}
	return survived, nil
}

// prepare makes the mutants of a target, and the test binary that has them.
func prepare(tmp, target string, quick bool) (p *pkg, b *binary, names []string, err error) {
	dir, tests, other := strings.Cut(target, "=")
	dir, files, _ := strings.Cut(dir, ":")
	if !other {
		tests = dir
	}
	if p, err = load(dir); err != nil {
		return nil, nil, nil, err
	}
	if files != "" {
		names = strings.Split(files, ",")
	}
	overlay, err := p.write(tmp, names)
	if err != nil {
		return nil, nil, nil, err
	}
	if b, err = build(tmp, overlay, tests); err != nil {
		return nil, nil, nil, err
	}
	b.quick = quick
	return p, b, names, b.observe()
}

// inOrder returns the mutants by their files as they were named.
func (p *pkg) inOrder(names []string) []int {
	ids := make([]int, len(p.mutants))
	for id := range ids {
		ids[id] = id
	}
	slices.SortStableFunc(ids, func(x, y int) int {
		file := func(id int) int { return slices.Index(names, filepath.Base(p.mutants[id].at.Filename)) }
		return file(x) - file(y)
	})
	return ids
}

// survivors tries each mutant, prints those that survive and make a difference as far as is known, and counts the
// others by their kinds.
func (c *cli) survivors(p *pkg, b *binary, names []string) (survived int, allowed map[kind]int) {
	allowed = map[kind]int{}
	for _, id := range p.inOrder(names) {
		m := p.mutants[id]
		if out, killed := b.kills(id); killed {
			if c.Verbose {
				fmt.Printf("%v: killed: %s\n%s\n", m.at, m.key, out)
			}
			continue
		}
		if m.kind != "" {
			allowed[m.kind]++
		} else {
			survived++
		}
		if m.kind == "" || c.All {
			fmt.Printf("%v: survived (%d tests): %s\n", m.at, len(b.judges(id)), m.key)
		}
	}
	return survived, allowed
}

func total(of map[kind]int) (n int) {
	for _, k := range of {
		n += k
	}
	return n
}
