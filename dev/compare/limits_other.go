//go:build !unix

package main

func maxConnections() int { return 1 << 20 }
