//go:build !linux

package tcp

const canSuppress = false

func (r *rawConn) wakeFrom(*suppression, int) bool { return false }
