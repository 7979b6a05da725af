//go:build !linux

package tcp

const canHush = false

func (r *rawConn) wakeFrom(*hush, int) bool { return false }
