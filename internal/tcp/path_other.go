//go:build !linux

package tcp

func (*rawConn) path() (Path, bool) { return Path{}, false }
