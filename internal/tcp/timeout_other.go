//go:build !linux

package tcp

import (
	"errors"
	"net"
	"time"
)

func setUserTimeout(*net.TCPConn, time.Duration) error { return errors.ErrUnsupported }
