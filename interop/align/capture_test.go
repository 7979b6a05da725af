//go:build interop && linux

package align_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A recording is a capture on the sender's interface that is decoded as it is made.
type recording struct {
	testing.TB
	decode.Ignore
	link     *link
	dump     *exec.Cmd
	end      uint16        // port of the connection after which nothing more is wanted
	ended    chan struct{} // closed when that was seen
	finished chan error
	conns    map[uint16]*decode.Connection // by the port of the end in A
	segments map[uint16][]segment          // from A, if they are asked for
	each     bool
}

// A segment is a TCP segment from A, and whether it begins and ends where FPDUs do.
type segment struct {
	offset       uint64
	length       int
	begins, ends bool
}

// record begins a recording. With each, segments are kept one by one.
func (l *link) record(t testing.TB, each bool) *recording {
	t.Helper()
	ln := l.listen(t)
	r := &recording{
		TB: t, link: l, end: uint16(ln.Addr().(*net.TCPAddr).Port), ended: make(chan struct{}),
		finished: make(chan error, 1),
		conns:    map[uint16]*decode.Connection{}, segments: map[uint16][]segment{}, each: each,
	}
	// The buffer holds all of it, however late it is read.
	r.dump = exec.CommandContext(t.Context(), "ip", "netns", "exec", l.a.netns, "tcpdump", "-i", l.a.device, "-s", "0",
		"-B", "131072", "-U", "-w", "-", "tcp or icmp")
	out, err := r.dump.StdoutPipe()
	testrig.Must(t, err)
	said, err := r.dump.StderrPipe()
	testrig.Must(t, err)
	testrig.Must(t, r.dump.Start())
	for lines := bufio.NewScanner(said); lines.Scan() && !strings.Contains(lines.Text(), "listening on"); {
	}
	from := keep(t, out)
	go func() {
		_, err := decode.Run(from, decode.Config{Want: r.want}, r)
		r.finished <- err
	}()
	return r
}

// keep has a copy of the capture in a file of the directory IWARP_ALIGN_KEEP, to look into a
// failure.
func keep(t testing.TB, out io.Reader) io.Reader {
	t.Helper()
	dir := os.Getenv("IWARP_ALIGN_KEEP")
	if dir == "" {
		return out
	}
	f, err := os.Create(filepath.Join(dir, strings.NewReplacer("/", "-", " ", "_", ",", "").Replace(t.Name())+".pcap"))
	testrig.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return io.TeeReader(out, f)
}

// want looks for the last connection.
func (r *recording) want(c *capture.Connection) bool {
	if c.Halves[capture.Backward].Addr.Port() != r.end {
		return true
	}
	close(r.ended)
	return false
}

// Ended is part of decode.Consumer.
func (r *recording) Ended(c *decode.Connection) {
	r.conns[c.TCP.Halves[capture.Forward].Addr.Port()] = c
}

// Segment is part of decode.Consumer.
func (r *recording) Segment(c *decode.Connection, s *decode.Segment) {
	if r.each && s.Dir == capture.Forward && s.Length > 0 && s.Order == capture.OrderNext {
		port := c.TCP.Halves[capture.Forward].Addr.Port()
		r.segments[port] = append(r.segments[port], segment{offset: s.Offset, length: s.Length})
	}
}

// FPDU is part of decode.Consumer.
func (r *recording) FPDU(c *decode.Connection, f *decode.FPDU) {
	if !r.each || f.Dir != capture.Forward {
		return
	}
	list := r.segments[c.TCP.Halves[capture.Forward].Addr.Port()]
	for i := len(list) - 1; i >= 0 && list[i].offset+uint64(list[i].length) >= f.Offset; i-- {
		list[i].begins = list[i].begins || list[i].offset == f.Offset
		list[i].ends = list[i].ends || list[i].offset+uint64(list[i].length) == f.End
	}
}

// stop ends the recording once all that has passed until now was decoded.
func (r *recording) stop() {
	r.Helper()
	testrig.Must(r, r.link.a.do(func() error {
		c, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", net.JoinHostPort(addrB, testPort(r.end)))
		if err != nil {
			return err
		}
		return c.Close()
	}))
	select {
	case <-r.ended:
	case err := <-r.finished:
		r.Fatalf("the capture has ended early: %v", err)
	case <-r.Context().Done():
		r.Fatal(context.Cause(r.Context()))
	}
	testrig.Must(r, r.dump.Process.Signal(os.Interrupt))
	testrig.Must(r, <-r.finished)
	_ = r.dump.Wait()
}
