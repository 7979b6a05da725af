package perf

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
)

// maxCC is how many bytes the name of a congestion control has at most.
const maxCC = 15

// validateCC refuses what cannot be the name of a congestion control.
func validateCC(name string) error {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' || len(name) > maxCC {
			return &OptionError{"cc", fmt.Sprintf(
				"%.40q is not the name of a congestion control, such as reno, bbr or cubic", name)}
		}
	}
	return nil
}

// ccError is why a congestion control cannot be set at one end.
func ccError(s side, name string, err error) error {
	return &OptionError{"cc", fmt.Sprintf("%q on the %v's sockets: %v%s", name, s, err, availableCC(err))}
}

// control returns what sets the congestion control of sockets that are about to connect or
// to listen, or nil if the system's default is to stay.
func (o Options) control(s side) func(network, address string, c syscall.RawConn) error {
	if o.CC == "" {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		if err := setCC(c, o.CC); err != nil {
			return ccError(s, o.CC, err)
		}
		return nil
	}
}

// A Listener listens for initiators.
type Listener struct {
	*iwarp.Listener
	raw  syscall.RawConn  // of its socket; nil if there is none
	over *network.Network // that ends with it; nil if there is nothing to end
}

// Close ends the Listener, and what it runs on.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	if l.over != nil {
		err = errors.Join(err, l.over.Close())
	}
	return err
}

func newListener(ln net.Listener) *Listener {
	l := new(Listener)
	if c, ok := ln.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			l.raw = raw
		}
	}
	l.Listener = listenConfig().NewListener(ln)
	return l
}

// congestion sets the congestion control of the connections that come from now on, which
// inherit that of the listening socket, and returns what it was before.
func (l *Listener) congestion(name string) (before string, err error) {
	if l == nil || l.raw == nil {
		return "", &OptionError{"cc", "the responder's listener is not a socket of its own, perhaps because it records, or serves others too"}
	}
	before = ccOf(l.raw)
	if err := setCC(l.raw, name); err != nil {
		return "", ccError(responder, name, err)
	}
	return before, nil
}

// ccOfConn returns the congestion control of a connection, or "" if that is not known.
func ccOfConn(conn net.Conn) string {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return ""
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return ""
	}
	return ccOf(raw)
}
