//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/filelock"
	"github.com/goiwarp/iwarp/internal/pcapfile"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
	"github.com/goiwarp/iwarp/internal/programs/settings"
)

// A Recording is a capture of what a process sends and receives, on connections and as datagrams. Its file has each
// packet as soon as there is one, as the process may end at any moment.
type Recording struct {
	name string
	file *pcapfile.File
	w    *capture.Writer
	told sync.Once
}

// Record begins a capture, which ends before it gets longer than a limit in bytes, if that is not 0. The file is
// locked. If it is that of another process that runs, of which the environment is the same, this one's has its number
// after the name.
func Record(name string, limit int64) (*Recording, error) {
	file, err := pcapfile.Create(name)
	if errors.Is(err, filelock.ErrHeld) {
		file, err = pcapfile.Create(fmt.Sprintf("%s.%d", name, os.Getpid()))
	}
	if err != nil {
		return nil, err
	}
	r := &Recording{name: file.Name(), file: pcapfile.On(file, limit)}
	r.w, err = capture.NewWriter(r, settings.Capture{}.WriterConfig())
	if err == nil {
		err = r.w.Flush()
	}
	return r, err
}

// Write takes packets for the file. The program goes on whatever becomes of them, and its user is told once.
func (r *Recording) Write(b []byte) (int, error) {
	n, err := r.file.Write(b)
	size, left := r.file.Bytes()
	if err == nil && left > 0 {
		err = fmt.Errorf("%s ends at %d bytes: see IWARP_PCAP_LIMIT", r.name, size)
	}
	if err != nil {
		r.told.Do(func() { complain(err) })
	}
	return n, err
}

// wrap returns what records a connection that this end has opened: nothing, for a Recording that is nil.
func (r *Recording) wrap() func(net.Conn) (net.Conn, error) {
	if r == nil {
		return nil
	}
	return func(c net.Conn) (net.Conn, error) { return capture.Tap(c, r.w, capture.Forward) }
}

// datagrams is wrap for sockets of datagrams.
func (r *Recording) datagrams() func(datagram.Conn) datagram.Conn {
	if r == nil {
		return nil
	}
	return func(c datagram.Conn) datagram.Conn { return capture.TapUDP(c, r.w) }
}

// listener returns one whose connections are recorded.
func (r *Recording) listener(ln net.Listener) net.Listener {
	if r == nil {
		return ln
	}
	return capture.TapListener(ln, r.w)
}
