//go:build linux && interposer

package programs

import "testing"

// canceled is testdata/canceled.c: threads that are canceled leave nothing locked.
func (l Library) canceled(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "canceled", pair...)
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
