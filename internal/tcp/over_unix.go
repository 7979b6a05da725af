//go:build unix && !linux

package tcp

type loss struct{}

func (*rawConn) over() (over, owes bool, err error) { return false, false, nil }
func (*rawConn) awaitOver() (known bool, err error) { return false, nil }
