//go:build !windows

package main

import "os"

// obeys reports whether a terminal obeys escape sequences, as all do that say nothing else.
func obeys(*os.File) bool { return os.Getenv("TERM") != "dumb" }
