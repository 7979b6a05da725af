//go:build !linux

package tcp

import "time"

const canRing = false

// A bell does not exist here: the receiving goroutine always reads itself.
type bell struct{}

func (*rawConn) newBell() *bell { return nil }

func (*bell) wait() bool                   { panic("unreachable") }
func (*bell) arm(bool) bool                { panic("unreachable") }
func (*bell) ringAfter(time.Duration) bool { panic("unreachable") }
func (*bell) close()                       { panic("unreachable") }
