//go:build !unix

package main

import "time"

func maxConnections() int { return 1 << 20 }

func cpuTime() time.Duration { return 0 }
