package main

import "testing"

// TestWithPort: an address of IPv6 may be in brackets.
func TestWithPort(t *testing.T) {
	for addr, want := range map[string]string{"": ":7", "h": "h:7", "h:1": "h:1", "::1": "[::1]:7",
		"[::1]": "[::1]:7", "[::1]:1": "[::1]:1"} {
		if got := withPort(addr, 7); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}
