package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
)

// requestLen is the length in bytes of what asks for a message, in the
// counterpart of a Read: its sequence number, and eight bytes for what else
// such a request would hold.
const requestLen = 16

// readChunk is how many bytes a read takes at most; more leaves the cache.
const readChunk = 256 << 10

// writeChunk is how many bytes a write takes at most: one that is slow shows that it moves.
const writeChunk = 1 << 20

// A tcpLane is a lane over plain TCP.
type tcpLane struct {
	conn  net.Conn
	moved *atomic.Int64 // bytes that conn has moved are added to it
	try   *tryReader    // of conn, to poll with
	bufs  buffers
	began net.Conn // what conn is beneath of, where it began in another that encrypts or records; or nil
}

// use has the lane be that connection.
func (l *tcpLane) use(conn net.Conn, moved *atomic.Int64) {
	l.conn, l.moved, l.try = conn, moved, newTryReader(conn)
}

// close ends the connection, and then what it began in, which has nothing to send any more but may record the end.
func (l *tcpLane) close() {
	if l.conn != nil {
		l.conn.Close()
	}
	if l.began != nil {
		l.began.Close()
	}
}

// read reads from the connection.
func (r *tcpRun) read(b []byte) (int, error) {
	n, err := r.readBusily(b)
	r.moved.Add(int64(n))
	return n, err
}

// write writes all to the connection.
func (r *tcpRun) write(b []byte) error {
	for len(b) > 0 {
		n, err := r.conn.Write(b[:min(len(b), writeChunk)])
		r.moved.Add(int64(n))
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// readBusily reads, busily at first if the slice polls.
func (r *tcpRun) readBusily(b []byte) (int, error) {
	if r.Poll && r.try != nil {
		for start, i := time.Now(), 1; i%pollClock != 0 || time.Since(start) < pollTime; i++ {
			if n, ok, err := r.try.read(b); ok {
				return n, err
			}
		}
	}
	return r.conn.Read(b)
}

func (l *tcpLane) prepare(job) error { return nil }

func (l *tcpLane) initiate(ctx context.Context, j job, rtt *hdr.Histogram) error {
	r := l.newRun(j)
	defer network.CloseWith(ctx, l.conn)()
	switch {
	case j.Both:
		return r.wrap(r.both(r.awaitLast))
	case j.Op.Fetches():
		return r.wrap(r.fetch(rtt))
	case j.Quantity == Latency:
		return r.wrap(r.ping(rtt))
	default:
		return r.wrap(r.stream())
	}
}

func (l *tcpLane) respond(ctx context.Context, j job) error {
	r := l.newRun(j)
	defer network.CloseWith(ctx, l.conn)()
	switch {
	case j.Both:
		return r.wrap(r.both(r.sendLast))
	case j.Op.Fetches():
		return r.wrap(r.serve())
	case j.Quantity == Latency:
		return r.wrap(r.pong())
	default:
		return r.wrap(r.absorb())
	}
}

// A tcpRun is one slice on a TCP connection as one side sees it.
type tcpRun struct {
	*tcpLane
	job
	out, in  ring
	received int64 // bytes
}

func (l *tcpLane) newRun(j job) *tcpRun {
	return &tcpRun{tcpLane: l, job: j, out: newRing(l.bufs.tx, j.Size, j.Slots),
		in: newRing(l.bufs.rx, j.Size, j.Slots)}
}

func (r *tcpRun) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("perf: plain TCP beside %v of %s (%s): %w", r.Op, wording.Bytes(r.Size), r.Quantity, err)
}

// receive reads until n messages have come in. What is read goes straight
// into the slots, which follow each other as the messages do.
func (r *tcpRun) receive(n int) error {
	need, all := int64(n)*int64(r.Size), int64(r.Count)*int64(r.Size)
	for r.received < need {
		at := int(r.received % int64(len(r.in.mem)))
		most := min(len(r.in.mem)-at, readChunk)
		got, err := r.read(r.in.mem[at : at+int(min(int64(most), all-r.received))])
		r.received += int64(got)
		if err != nil && r.received < need {
			return err
		}
	}
	return nil
}

// whole returns how many messages have come in as a whole.
func (r *tcpRun) whole() int { return int(r.received / int64(r.Size)) }

// send writes message i. Nobody acts at the source of a Read, so that its messages have no
// sequence number.
func (r *tcpRun) send(i int) error {
	msg := r.out.message(r.out.source(i))
	if !r.Op.Fetches() {
		msg = r.out.stamped(&r.job, i)
	}
	return r.write(msg)
}

// stream sends all messages and waits for the byte that says they are there.
func (r *tcpRun) stream() error {
	if err := r.sendAll(); err != nil {
		return err
	}
	return r.awaitLast()
}

func (r *tcpRun) absorb() error {
	if err := r.receive(r.Count); err != nil {
		return err
	}
	return r.sendLast()
}

// both sends all messages while it receives as many, and then does what ends the slice. For
// Reads the messages are sent unasked.
func (r *tcpRun) both(last func() error) error {
	sent := make(chan error, 1)
	go func() { sent <- r.sendAll() }()
	err := r.receive(r.Count)
	if err != nil {
		r.conn.Close() // or the other direction might wait for ever
	}
	if err = errors.Join(err, <-sent); err != nil {
		return err
	}
	return last()
}

func (r *tcpRun) sendAll() error {
	for i := range r.Count {
		if err := r.send(i); err != nil {
			return err
		}
	}
	return nil
}

// awaitLast waits for the byte that says that all has arrived.
func (r *tcpRun) awaitLast() error {
	_, err := io.ReadFull(r.conn, make([]byte, 1))
	return err
}

func (r *tcpRun) sendLast() error {
	return r.write([]byte{1})
}

func (r *tcpRun) ping(rtt *hdr.Histogram) error {
	last := time.Now()
	for i := range r.Count {
		if err := r.send(i); err != nil {
			return err
		}
		if err := r.receive(i + 1); err != nil {
			return err
		}
		now := time.Now()
		record(rtt, now.Sub(last))
		last = now
	}
	return nil
}

func (r *tcpRun) pong() error {
	for i := range r.Count {
		if err := r.receive(i + 1); err != nil {
			return err
		}
		if err := r.send(i); err != nil {
			return err
		}
	}
	return nil
}

// fetch asks for messages, as many under way as the job's depth allows (one,
// when latency is measured), and reads them.
func (r *tcpRun) fetch(rtt *hdr.Histogram) error {
	depth := r.Depth
	if r.Quantity == Latency {
		depth = 1
	}
	requests := make([]byte, 0, depth*requestLen)
	last := time.Now()
	for asked, done := 0, 0; done < r.Count; done = r.whole() {
		requests = requests[:0]
		for ; asked < min(r.Count, done+depth); asked++ {
			requests = appendRequest(requests, asked)
		}
		if err := r.write(requests); err != nil {
			return err
		}
		if err := r.receive(done + 1); err != nil {
			return err
		}
		if r.Quantity == Latency {
			now := time.Now()
			record(rtt, now.Sub(last))
			last = now
		}
	}
	return nil
}

func appendRequest(b []byte, i int) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(i))
	return append(b, make([]byte, requestLen-8)...)
}

// serve answers each request with the message asked for.
func (r *tcpRun) serve() error {
	requests := make([]byte, r.Depth*requestLen)
	for have, done := 0, 0; done < r.Count; {
		n, err := r.read(requests[have:])
		if err != nil {
			return err
		}
		have += n
		used := 0
		for ; have-used >= requestLen; used += requestLen {
			i := binary.BigEndian.Uint64(requests[used:])
			slot := r.out.source(int(i % uint64(r.Count)))
			if err := r.write(r.out.message(slot)); err != nil {
				return err
			}
			done++
		}
		have = copy(requests, requests[used:have])
	}
	return nil
}
