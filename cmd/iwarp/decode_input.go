package main

import (
	"context"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// liveBuffer is the bytes that are read at once.
const liveBuffer = 1 << 20

// A liveReader reads from a source that may be slow, as standard input is: what was
// found is printed before it waits, and an interrupt ends it.
type liveReader struct {
	ctx   context.Context
	flush func() error
	full  chan []byte // what was read
	empty chan []byte // buffers to read into
	err   error       // of the source, once full is closed
	rest  []byte
	last  []byte
}

// newLiveReader begins to read. After an interrupt the reading ends with the next bytes
// of the source, or with the program.
func newLiveReader(ctx context.Context, from io.Reader, flush func() error) *liveReader {
	r := &liveReader{ctx: ctx, flush: flush, full: make(chan []byte, 1), empty: make(chan []byte, 2)}
	r.empty <- make([]byte, liveBuffer)
	r.empty <- make([]byte, liveBuffer)
	go r.pump(from)
	return r
}

func (r *liveReader) pump(from io.Reader) {
	defer close(r.full)
	for {
		b := <-r.empty
		n, err := from.Read(b[:liveBuffer])
		r.err = err
		select {
		case r.full <- b[:n]:
		case <-r.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Read returns what was read of the source. The error after an interrupt is
// context.Canceled.
func (r *liveReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.last != nil {
			r.empty <- r.last
			r.last = nil
		}
		if err := r.wait(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *liveReader) wait() error {
	select {
	case b, ok := <-r.full:
		return r.got(b, ok)
	case <-r.ctx.Done():
		return context.Canceled
	default:
	}
	if err := r.flush(); err != nil {
		return err
	}
	select {
	case b, ok := <-r.full:
		return r.got(b, ok)
	case <-r.ctx.Done():
		return context.Canceled
	}
}

func (r *liveReader) got(b []byte, ok bool) error {
	switch {
	case !ok && r.err != nil:
		return r.err
	case !ok:
		return context.Canceled
	}
	r.rest, r.last = b, b
	return nil
}

// A filter is what --filter lets through; nil is all.
type filter struct {
	tcp  func(*capture.Connection) bool
	sctp func(*decode.Session) bool
}

// filterOf returns what --filter lets through: a number, s and a number, a host, or host:port.
func filterOf(which string) (filter, error) {
	if which == "" {
		return filter{}, nil
	}
	if n, err := strconv.Atoi(which); err == nil {
		return filter{
			func(c *capture.Connection) bool { return c.Number == n },
			func(*decode.Session) bool { return false },
		}, nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(which, "s")); err == nil {
		return filter{
			func(*capture.Connection) bool { return false },
			func(s *decode.Session) bool { return s.Number == n },
		}, nil
	}
	if host, err := netip.ParseAddr(which); err == nil {
		return ends(func(a netip.AddrPort) bool { return a.Addr() == host }), nil
	}
	end, err := netip.ParseAddrPort(which)
	if err != nil {
		return filter{}, usage("decode: --filter: %q: expected a connection (3), an SCTP session (s3), an address or address:port", which)
	}
	return ends(func(a netip.AddrPort) bool { return a == end }), nil
}

// ends is a filter for what has an end.
func ends(is func(netip.AddrPort) bool) filter {
	return filter{
		func(c *capture.Connection) bool { return is(c.Halves[0].Addr) || is(c.Halves[1].Addr) },
		func(s *decode.Session) bool { return is(s.SCTP.Ends[0].Addr) || is(s.SCTP.Ends[1].Addr) },
	}
}
