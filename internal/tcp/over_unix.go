//go:build unix && !linux

package tcp

type loss struct{}

func (*rawConn) over() (over bool, owed int, err error) { return false, 0, nil }
func (*rawConn) awaitOver() (known bool, err error)     { return false, nil }
