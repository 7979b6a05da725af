package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/procstat"
)

const (
	bareMessage = 1 << 20
	bareWrite   = 64 << 10  // bytes that are copied, summed and written at once
	bareRead    = 128 << 10 // bytes that are read at once
	bareMemory  = 16 << 20  // of each end, used in turns, so that no cache holds all of it
)

// A bareResult is what the loop took.
type bareResult struct {
	rate float64 // MiB/s
	cpu  float64 // microseconds of both ends, a message
}

// bareLoop sends for some time over TCP, from one goroutine to another. As iWARP must, the sender copies what it sums,
// and the receiver copies what it read into place, and sums it. Without the CRC the sender does not copy. There are no
// headers, no lists of requests and no completions.
func bareLoop(ctx context.Context, cc string, crc bool, d time.Duration) (bareResult, error) {
	from, to, err := bareConns(ctx, cc)
	if err != nil {
		return bareResult{}, err
	}
	defer from.Close()
	defer to.Close()
	received := make(chan int64, 1)
	go func() { received <- bareReceive(to, crc) }()
	used, start := procstat.CPUTime(), time.Now()
	sent, err := bareSend(from, crc, start.Add(d))
	_ = from.Close()
	n := <-received
	if err == nil && n != sent {
		err = fmt.Errorf("bare loop: %d bytes were sent and %d received", sent, n)
	}
	messages := float64(n) / bareMessage
	return bareResult{messages / time.Since(start).Seconds(),
		float64((procstat.CPUTime() - used).Nanoseconds()) / 1e3 / messages}, errors.Join(err, ctx.Err())
}

// bareConns is a connection over loopback, with a congestion control.
func bareConns(ctx context.Context, cc string) (from, to net.Conn, err error) {
	control := func(_, _ string, c syscall.RawConn) error { return setCongestion(c, cc) }
	ln, err := (&net.ListenConfig{Control: control}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if from, err = (&net.Dialer{Control: control}).DialContext(ctx, "tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	if to, err = ln.Accept(); err != nil {
		_ = from.Close()
	}
	return from, to, err
}

func bareSend(c net.Conn, crc bool, until time.Time) (total int64, err error) {
	memory, staged := make([]byte, bareMemory), make([]byte, bareWrite)
	for total == 0 || time.Now().Before(until) {
		p := memory[total%bareMemory:][:bareWrite]
		if crc {
			crc32c.Copy(staged, p, 0)
			p = staged
		}
		n, err := c.Write(p)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func bareReceive(c net.Conn, crc bool) (total int64) {
	memory, buffer := make([]byte, bareMemory+bareRead), make([]byte, bareRead)
	for {
		n, err := io.ReadAtLeast(c, buffer, 1)
		place := memory[total%bareMemory:][:n]
		if crc {
			crc32c.Copy(place, buffer[:n], 0)
		} else {
			copy(place, buffer[:n])
		}
		total += int64(n)
		if err != nil {
			return total
		}
	}
}
