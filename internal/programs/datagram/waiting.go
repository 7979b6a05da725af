//go:build linux && (amd64 || arm64)

package datagram

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A program that polls takes what comes by itself. A thread that each datagram wakes beside that costs it the processor,
// and may hold the lock while it has none. So Serve stands back while somebody polls. Until then the socket is one of
// those for which Go's runtime waits: these have a thread woken, whatever is done with what comes.
const (
	standBack = 4 * time.Millisecond // until Serve looks again
	manyPolls = 64                   // meanwhile, of a program that polls
	patience  = 8                    // looks without them until it comes back: the program may have had no processor
)

// wait takes what comes, until somebody polls, or the Socket is closed.
func (s *Socket) wait() {
	file := s.watched()
	if file == nil {
		s.rest(standBack)
		return
	}
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		s.drain()
		return s.polls.Swap(0) >= manyPolls && !s.expected.Swap(false) || s.closing.Load()
	})
}

// watched returns the socket as a file for which the runtime waits, and which Close interrupts.
func (s *Socket) watched() *os.File {
	s.taking.Lock()
	defer s.taking.Unlock()
	fd, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil { // no descriptor is left, or the Socket is closed
		s.file = nil
		return nil
	}
	s.file = os.NewFile(uintptr(fd), "datagrams")
	return s.file
}

func (s *Socket) drain() {
	s.taking.Lock()
	defer s.taking.Unlock()
	for s.receive() {
	}
}

// stayAway returns when nobody polls any more, or somebody waits, or the Socket is closed.
func (s *Socket) stayAway() {
	s.away.Store(true)
	defer s.away.Store(false)
	for idle := 0; idle < patience; idle++ {
		if s.expected.Swap(false) || s.closing.Load() {
			return
		}
		s.rest(standBack)
		if s.polls.Swap(0) >= manyPolls {
			idle = -1
		} else {
			s.drain()
		}
	}
}

func (s *Socket) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.nudged:
	}
}

// Expect ends that Serve stands back: somebody waits for what comes.
func (s *Socket) Expect() {
	s.expected.Store(true)
	if s.away.Load() {
		s.nudge()
	}
}

func (s *Socket) nudge() {
	select {
	case s.nudged <- struct{}{}:
	default:
	}
}
