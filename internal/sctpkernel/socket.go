package sctpkernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// A socket is a descriptor that Go's poller watches.
type socket struct {
	f  *os.File
	rc syscall.RawConn
}

func watch(fd int) (*socket, error) {
	f := os.NewFile(uintptr(fd), "sctp")
	rc, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &socket{f, rc}, nil
}

// open makes a socket for associations, bound to an address. prepare is called before that.
func open(at netip.AddrPort, v6 bool, cfg *Config, prepare func(fd int) error) (s *socket, err error) {
	fd, err := openSocket(v6)
	if err != nil {
		return nil, err
	}
	if s, err = watch(fd); err != nil {
		return nil, err
	}
	err = s.do(func(fd int) error {
		if err := setUp(fd, cfg); err != nil {
			return err
		}
		return prepare(fd)
	})
	if err == nil && cfg.Control != nil {
		network := "sctp4"
		if v6 {
			network = "sctp6"
		}
		err = cfg.Control(network, at.String(), s.rc)
	}
	if err == nil {
		err = s.do(func(fd int) error { return bind(fd, at, v6) })
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// setUp sets the options of a socket.
func setUp(fd int, cfg *Config) error {
	for _, o := range cfg.options() {
		if err := setOption(fd, o.opt, o.value); err != nil {
			return fmt.Errorf("setting %s: %w", o.name, err)
		}
	}
	// RFC 5043 has reliable messages only. A kernel that does not know the option has no other, or will not be asked
	// for it.
	_ = setOption(fd, optPRSupported, words(0, 0))
	if err := abortOnClose(fd, true); err != nil {
		return err
	}
	setBuffers(fd, cfg.Window)
	return nil
}

// do calls a function with the descriptor, which is open meanwhile.
func (s *socket) do(f func(fd int) error) error {
	var err error
	if e := s.rc.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

// abort ends one of its associations at once, and tells the peer why.
func (s *socket) abort(assoc int32, text string) {
	info := sndInfo{flags: flagAbort, assoc: assoc}.append(nil)
	_ = s.do(func(fd int) error { return sendmsg(fd, lowerlayer.Reason(text), info) })
}

// close closes the descriptor. Calls that wait end, and what associations it has are aborted.
func (s *socket) close() { _ = s.f.Close() }

// An inbound is what one recvmsg has brought.
type inbound struct {
	buf, data  []byte
	n, flags   int
	control    [128]byte
	controlLen int
	from       netip.AddrPort
}

// inbounds are in use only while there is something in them: an idle association has none.
var inbounds = sync.Pool{New: func() any { return &inbound{buf: make([]byte, lowerlayer.MaxMessage)} }}

func (m *inbound) release() { inbounds.Put(m) }

// recv waits for what comes next. The caller releases it. After close or interrupt it returns net.ErrClosed.
func (s *socket) recv() (m *inbound, err error) {
	if e := s.rc.Read(func(fd uintptr) bool {
		m, err = receive(int(fd))
		return !again(err)
	}); e != nil {
		return nil, net.ErrClosed
	}
	return m, err
}

// tryRecv is recv without waiting.
func (s *socket) tryRecv() (m *inbound, err error) {
	err = s.do(func(fd int) error {
		m, err = receive(fd)
		return err
	})
	return m, err
}

func receive(fd int) (*inbound, error) {
	m := inbounds.Get().(*inbound)
	if err := recvmsg(fd, m); err != nil {
		m.release()
		return nil, err
	}
	m.data = m.buf[:m.n]
	return m, nil
}

// notification returns what was notified. It is of no kind for a message, and for what cannot be read.
func (m *inbound) notification() (n notification) {
	if m.flags&msgNotification != 0 {
		n, _ = parseNotification(m.data)
	}
	return n
}

// ErrNone is that there is no SCTP in the kernel, or none for this program.
var ErrNone = fmt.Errorf("no SCTP in the kernel (on Linux: module sctp): %w", errors.ErrUnsupported)

// An Addr is an address and an SCTP port.
type Addr struct{ netip.AddrPort }

// Network is "sctp".
func (Addr) Network() string { return "sctp" }

// scope returns the number of a zone, 0 for none.
func scope(a netip.Addr) uint32 {
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(a.Zone(), 10, 32)
	return uint32(n)
}

// zoned gives a link-local address the zone that it needs to be of use.
func zoned(a netip.Addr, scope uint32) netip.Addr {
	if a = a.Unmap(); scope == 0 || a.Is4() {
		return a
	}
	if i, err := net.InterfaceByIndex(int(scope)); err == nil {
		return a.WithZone(i.Name)
	}
	return a.WithZone(strconv.FormatUint(uint64(scope), 10))
}
