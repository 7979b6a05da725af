package main

import (
	"context"
	"io"
	"net"
)

// An exchange is what the two ends of a TCP connection send in turns, the client first, in bytes.
type exchange struct {
	turns []int
	// inOrder has each end close its half, and await the other's end.
	inOrder bool
}

// plainExchange is what a program over TCP does that has a message each way.
var plainExchange = exchange{turns: []int{shortMessage, shortMessage}}

// sameExchange has the bytes and the round trips of iwarp, as TCP carries them: a Request and a Reply of revision 2,
// an FPDU with an empty Write, which is the RTR indication, in one segment with that of a Send, and one of a Send back;
// and ends that close in order.
var sameExchange = exchange{
	turns:   []int{startupLen, startupLen, emptyWriteLen + sendLen, sendLen},
	inOrder: true,
}

// Sizes on the stream, in bytes: RFC 5044, section 7.1.1, with RFC 6581, section 9.1; RFC 5044, section 3, with RFC
// 5041, sections 4.1 and 4.2.
const (
	startupLen    = 20 + 4
	emptyWriteLen = 2 + 14 + 4
	sendLen       = 2 + 18 + shortMessage + 4
)

// open listens, and returns what has one connection.
func (e exchange) open(ctx context.Context) (run func() error, end func(), err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return nil, nil, err
	}
	go e.serve(ln)
	return func() error { return e.run(ln.Addr().String()) }, func() { _ = ln.Close() }, nil
}

func (e exchange) serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if e.takeTurns(c, 1) == nil && e.closeHalf(c) == nil {
				_, _ = io.Copy(io.Discard, c)
			}
		}()
	}
}

func (e exchange) run(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := e.takeTurns(c, 0); err != nil || !e.inOrder {
		return err
	}
	if err := e.closeHalf(c); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// takeTurns has all turns: ours are those of an even number if first is 0, and the odd ones if it is 1.
func (e exchange) takeTurns(c net.Conn, first int) error {
	var room [256]byte
	for i, n := range e.turns {
		var err error
		if i%2 == first {
			_, err = c.Write(room[:n])
		} else {
			_, err = io.ReadFull(c, room[:n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e exchange) closeHalf(c net.Conn) error {
	if !e.inOrder {
		return nil
	}
	return c.(*net.TCPConn).CloseWrite()
}
