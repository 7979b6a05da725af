//go:build !linux

package main

import "syscall"

const limitsSegments = false

func limitSegments(syscall.RawConn, string) error { return errNotMeasured }

func setCongestion(syscall.RawConn, string) error { return errNotMeasured }
