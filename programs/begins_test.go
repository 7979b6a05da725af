//go:build linux && interposer

package programs

import "testing"

// first is testdata/first.c: a fork beside the first call, and what that call does to limits of the process.
func (l Library) first(t *testing.T) { l.compiled(t, "first", pair...) }

// scarce is testdata/scarce.c: a process without descriptors, or without /dev/null; and scarce_cm.c: one that connects with a few.
func (l Library) scarce(t *testing.T) {
	l.compiled(t, "scarce", pair...)
	l.compiled(t, "scarce_cm", pair...)
}

// churn is testdata/churn.c: forks while threads hold locks.
func (l Library) churn(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "churn", append(pair, "-D_GNU_SOURCE")...)
}
