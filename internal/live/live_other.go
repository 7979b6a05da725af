//go:build !linux

package live

import "github.com/goiwarp/iwarp/capture"

// A Source gives packets.
type Source struct{}

// Open returns ErrSystem.
func Open(string, Config) (*Source, error) { return nil, ErrSystem }

// Next returns ErrSystem.
func (*Source) Next() (*capture.Packet, error) { return nil, ErrSystem }

// Lost returns 0.
func (*Source) Lost() uint64 { return 0 }

// Interrupt does nothing.
func (*Source) Interrupt() {}

// Close does nothing.
func (*Source) Close() error { return nil }
