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
	"strings"
)

// reasons is the document that says why a survivor may live.
const reasons = "docs/mutation.md"

// verbose has the command print how each mutant dies.
var verbose = os.Getenv("VERBOSE") != ""

// judge tries the mutants that an argument names, and returns the number of survivors without a reason.
func judge(arg, known string) (int, error) {
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	p, b, err := prepare(tmp, arg)
	if err != nil {
		return 0, err
	}
	survived, unexplained := p.survivors(b, known)
	fmt.Printf("%s: %d changes, %d killed, %d survived, %d of them without a reason\n",
		arg, len(p.mutants), len(p.mutants)-survived, survived, unexplained)
	return unexplained, nil
}

// prepare makes the mutants that an argument names, and the test binary that has them.
func prepare(tmp, arg string) (*pkg, *binary, error) {
	dir, tests, other := strings.Cut(arg, "=")
	dir, files, _ := strings.Cut(dir, ":")
	if !other {
		tests = dir
	}
	p, err := load(dir)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	if files != "" {
		names = strings.Split(files, ",")
	}
	overlay, err := p.write(tmp, names)
	if err != nil {
		return nil, nil, err
	}
	b, err := build(tmp, overlay, tests)
	if err != nil {
		return nil, nil, err
	}
	return p, b, b.observe()
}

// survivors tries each mutant, and counts those that survive, and those of them without a
// known reason, which it prints.
func (p *pkg) survivors(b *binary, known string) (survived, unexplained int) {
	for id, m := range p.mutants {
		if out, killed := b.kills(id); killed {
			if verbose {
				fmt.Printf("%v: killed: `%s`\n%s\n", m.at, m.key, out)
			}
			continue
		}
		survived++
		if strings.Contains(known, "`"+m.key+"`") {
			continue
		}
		unexplained++
		fmt.Printf("%v: survived (%d tests reach it): `%s`\n", m.at, len(b.reached[id]), m.key)
	}
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
