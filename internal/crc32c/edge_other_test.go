//go:build !linux

package crc32c

import "testing"

// edges returns a page, in front of which and after which there is no telling what can be read.
func edges(*testing.T) []byte { return make([]byte, 4096) }
