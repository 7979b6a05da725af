//go:build !linux

package perf

import (
	"errors"
	"syscall"
)

func setCC(syscall.RawConn, string) error { return errors.ErrUnsupported }

func ccOf(syscall.RawConn) string { return "" }

func availableCC(error) string { return "; only on Linux can it be chosen" }
