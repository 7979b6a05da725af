// Mutants changes one thing in a package at a time, runs the package's tests with that, and
// prints the changes that no test has noticed. Its arguments are packages' directories, or
// package=package to judge a package by the tests of another, or package:file,file for
// some of its files. The exit status is 1 if a survivor has no reason in docs/mutation.md.
//
// All mutants of a package are compiled into one test binary, and the environment says which of
// them is alive. A first run notes which test reaches which mutant; only those tests judge it.
// The work tree is not changed: the mutants are an overlay of the go command.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reasons is the document that says why a survivor may live.
const reasons = "docs/mutation.md"

// verbose has the command print how each mutant dies; quick leaves slow tests out where quicker
// ones reach a change, so that a survivor may be one that only those would notice.
var verbose, quick = os.Getenv("VERBOSE") != "", os.Getenv("QUICK") != ""

// judge tries the mutants that an argument names, and returns the number of survivors without a reason.
func judge(arg, known string) (int, error) {
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	p, b, names, err := prepare(tmp, arg)
	if err != nil {
		return 0, err
	}
	survived, unexplained := p.survivors(b, names, known)
	fmt.Printf("%s: %d changes, %d killed, %d survived, %d of them without a reason\n",
		arg, len(p.mutants), len(p.mutants)-survived, survived, unexplained)
	return unexplained, nil
}

// prepare makes the mutants that an argument names, and the test binary that has them.
func prepare(tmp, arg string) (p *pkg, b *binary, names []string, err error) {
	dir, tests, other := strings.Cut(arg, "=")
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

// survivors tries each mutant, and counts those that survive, and those of them without a
// known reason, which it prints. Each file's number follows its own.
func (p *pkg) survivors(b *binary, names []string, known string) (survived, unexplained int) {
	file, tried, lived := "", 0, 0
	tell := func() {
		if tried > 0 {
			fmt.Printf("%s: %d changes, %d killed\n", file, tried, tried-lived)
		}
	}
	for _, id := range p.inOrder(names) {
		m := p.mutants[id]
		if m.at.Filename != file {
			tell()
			file, tried, lived = m.at.Filename, 0, 0
		}
		tried++
		if out, killed := b.kills(id); killed {
			if verbose {
				fmt.Printf("%v: killed: `%s`\n%s\n", m.at, m.key, out)
			}
			continue
		}
		lived++
		survived++
		if !strings.Contains(known, "`"+m.key+"`") {
			unexplained++
			fmt.Printf("%v: survived (%d tests): `%s`\n", m.at, len(b.judges(id)), m.key)
		}
	}
	tell()
	return survived, unexplained
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: .ci/mutate DIRECTORY[:FILE,FILE...][=DIRECTORY OF TESTS]...")
		os.Exit(2)
	}
	known, err := os.ReadFile(reasons)
	unexplained := 0
	text := strings.ReplaceAll(string(known), `\|`, "|") // as tables have it
	for _, arg := range os.Args[1:] {
		if err == nil {
			var n int
			n, err = judge(arg, text)
			unexplained += n
		}
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	case unexplained > 0:
		os.Exit(1)
	}
}
