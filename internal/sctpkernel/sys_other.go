//go:build !linux

package sctpkernel

import "net/netip"

const peelFlags = 0

func openSocket(bool) (int, error)            { return -1, ErrNone }
func bind(int, netip.AddrPort, bool) error    { return ErrNone }
func listen(int) error                        { return ErrNone }
func connect(int, netip.AddrPort, bool) error { return ErrNone }
func name(int) (netip.AddrPort, error)        { return netip.AddrPort{}, ErrNone }
func setOption(int, int, []byte) error        { return ErrNone }
func getOption(int, int, []byte) error        { return ErrNone }
func setBuffers(int, int) (int, error)        { return 0, ErrNone }
func abortOnClose(int, bool) error            { return ErrNone }
func reuse(int) error                         { return ErrNone }
func onlyV6(int, bool) error                  { return ErrNone }
func unacknowledged(int) (int, error)         { return 0, ErrNone }
func lastError(int) error                     { return nil }
func timedOut(error) bool                     { return false }
func again(error) bool                        { return false }
func sendmsg(_ int, _, _ []byte) error        { return ErrNone }
func recvmsg(int, *inbound) error             { return ErrNone }
