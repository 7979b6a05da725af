package programs

import (
	"slices"
	"strings"
)

// A Guise is what the device says that it is. Programs refuse the one or want it: docs/programs.md has which and why.
type Guise string

const (
	// IWARP is what it is: connections are made by librdmacm.
	IWARP Guise = "iwarp"
	// RoCE is for programs that connect QPs by themselves, by number and GID.
	RoCE Guise = "roce"
)

// guiseVariable of the environment has the Guise.
const guiseVariable = "IWARP_AS"

// environmentAs is Environment with a Guise. If it is empty, that of the environment holds; without one each process
// that loads the library chooses by itself, by the program's name (programs/preload/guise.c).
func (l Library) environmentAs(environ []string, as Guise) []string {
	out := l.Environment(environ)
	if as == "" {
		return out
	}
	prefix := guiseVariable + "="
	out = slices.DeleteFunc(out, func(s string) bool { return strings.HasPrefix(s, prefix) })
	return append(out, prefix+string(as))
}
