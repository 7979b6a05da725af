package programs

import (
	"path/filepath"
	"regexp"
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

// connects has the programs that connect QPs by themselves, and perftest those that do so unless they are told to use librdmacm.
// waits has those that free what a connection had when they hear RoCE's event of the end of its time-wait state.
var (
	waits    = []string{"tgtd"}
	connects = []string{"ibv_rc_pingpong", "ibv_srq_pingpong", "ibv_ud_pingpong", "ucx_info", "ucx_perftest", "mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec", "mpiexec.hydra", "mpiexec.openmpi", "mpiexec.mpich", "orterun"}
	perftest = regexp.MustCompile(`^ib_(write|send|read|atomic)_(bw|lat)$`)
	useCM    = regexp.MustCompile(`^(-[A-Za-z]*R[A-Za-z]*|--rdma_cm)$`)
)

// GuiseOf returns the Guise that a program needs, as far as its name and arguments tell.
func GuiseOf(args []string) Guise {
	name := filepath.Base(args[0])
	if slices.Contains(connects, name) || slices.Contains(waits, name) || perftest.MatchString(name) && !slices.ContainsFunc(args[1:], useCM.MatchString) {
		return RoCE
	}
	return IWARP
}

// environmentAs is Environment with a Guise. If it is empty, that of the environment holds, and then what the program needs.
func (l Library) environmentAs(environ, args []string, as Guise) []string {
	out := l.Environment(environ)
	prefix := guiseVariable + "="
	i := slices.IndexFunc(out, func(s string) bool { return strings.HasPrefix(s, prefix) })
	switch {
	case i >= 0 && (as != "" || out[i] == prefix):
		out = slices.Delete(out, i, i+1)
	case i >= 0:
		return out
	}
	if as == "" {
		as = GuiseOf(args)
	}
	return append(out, prefix+string(as))
}
