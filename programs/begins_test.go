//go:build linux && interposer

package programs

import "testing"

// first is testdata/first.c: a fork beside the first call, and what that call does to limits of the process.
func (l Library) first(t *testing.T) { l.compiled(t, "first", pair...) }

// scarce is testdata/scarce.c: a process without descriptors, or without /dev/null.
func (l Library) scarce(t *testing.T) { l.compiled(t, "scarce", pair...) }
