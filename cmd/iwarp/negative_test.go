package main

import (
	"testing"
	"time"
)

// TestDurations: a time without a unit is in seconds, for every command.
func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "5s": 5 * time.Second, "0.5": 500 * time.Millisecond, "400ms": 400 * time.Millisecond,
		"-1": -time.Second, "2m": 2 * time.Minute, "inf": 0, "five": 0, "5 s": 0, "": 0,
	} {
		c, err := parsed(t, []string{"serve", "--idle", text})
		if (err == nil) != (want != 0) || err == nil && c.Serve.Idle != want {
			t.Errorf("%q: %v, %v", text, c.Serve.Idle, err)
		}
	}
}
