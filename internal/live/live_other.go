//go:build !linux

package live

import "github.com/goiwarp/iwarp/capture"

// A Source gives packets.
type Source struct{}

// Open returns ErrSystem.
func Open(string, Config) (*Source, error) { return nil, ErrSystem }

// Next returns ErrSystem.
func (*Source) Next() (*capture.Packet, error) { return nil, ErrSystem }

// Interrupt does nothing.
func (*Source) Interrupt() {}

// Close does nothing.
func (*Source) Close() error { return nil }
