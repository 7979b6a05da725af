//go:build linux && interposer

package programs

import "testing"

// cancelled is testdata/cancelled.c: threads that are cancelled leave nothing locked.
func (l Library) cancelled(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "cancelled", pair...)
}

// destroyed is testdata/destroyed.c: a thread that waits for events of a channel that another one destroys is told of nothing.
func (l Library) destroyed(t *testing.T) {
	l.compiled(t, "destroyed", append([]string{"-rdynamic"}, pair...)...)
}

// restarted is testdata/restarted.c: calls that wait for events are interrupted as a read is.
func (l Library) restarted(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "restarted", pair...)
}
