//go:build !unix

package tcp

import "syscall"

func peek(syscall.Conn) bool { return false }

func readable(syscall.Conn) bool { return true }
