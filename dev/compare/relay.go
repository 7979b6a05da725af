package main

import (
	"context"
	"net"
	"time"
)

// A heldBack is what a relay has read, until it is due.
type heldBack struct {
	b   []byte
	due time.Time
}

// A relay's direction holds at most heldMost reads of chunk bytes back.
const (
	relayChunk = 64 << 10
	heldMost   = 1 << 10
)

// startRelay passes connections on to addr, and returns its own address. Each byte is on
// its way for the delay. It ends with the context.
func startRelay(ctx context.Context, addr string, delay time.Duration) (string, error) {
	ln, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				in.Close()
				continue
			}
			context.AfterFunc(ctx, func() {
				in.Close()
				out.Close()
			})
			go pass(in, out, delay)
			go pass(out, in, delay)
		}
	}()
	return ln.Addr().String(), nil
}

// pass carries one direction, and its end.
func pass(from, to net.Conn, delay time.Duration) {
	queue := make(chan heldBack, heldMost)
	go func() {
		defer close(queue)
		for {
			b := make([]byte, relayChunk)
			n, err := from.Read(b)
			if n > 0 {
				queue <- heldBack{b[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for h := range queue {
		pause(time.Until(h.due))
		if _, err := to.Write(h.b); err != nil {
			break
		}
	}
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
	for range queue { // what can no longer be passed on
	}
}
