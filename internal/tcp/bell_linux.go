package tcp

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const canRing = true

// A bell tells that a socket has bytes, a FIN or an error, once for each time it is armed; of a FIN or an error also
// when it is disarmed. It is an epoll set with the socket in it, which Go's poller watches beside the socket itself:
// to arm or disarm it takes one short system call and wakes nobody. Its timer is one of the system's: with a short
// timer of Go's, every wait of a thread would get a limit, and the runtime's monitor would not come to rest.
type bell struct {
	socket syscall.RawConn
	file   *os.File
	rc     syscall.RawConn
	waitFn func(fd uintptr) bool
	rungBy int32 // who has rung it last; for the goroutine that waits

	// Guarded by the role's lock.
	armFn, onFn func(fd uintptr)
	event       unix.EpollEvent
	epfd        int
	ok          bool
	timer       int // a descriptor; negative: none yet
}

// Who rings a bell, as its events say.
const (
	theSocket int32 = iota
	theTimer
)

// newBell returns a bell that is not armed, or nil where the system gives none.
func (r *rawConn) newBell() *bell {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	_ = unix.SetNonblock(fd, true) // which makes os.NewFile have the poller watch it
	b := &bell{socket: r.rc, file: os.NewFile(uintptr(fd), "epoll"), timer: -1}
	b.waitFn, b.armFn, b.onFn = b.rung, b.control, b.modify
	if b.rc, err = b.file.SyscallConn(); err != nil || !b.watched() || !b.add() {
		b.close()
		return nil
	}
	return b
}

// watched reports whether Go's poller watches the set: otherwise to wait for it would take a
// thread.
func (b *bell) watched() bool { return b.file.SetReadDeadline(time.Time{}) == nil }

func (b *bell) add() bool {
	b.ok = false
	_ = b.socket.Control(func(socket uintptr) {
		_ = b.rc.Control(func(fd uintptr) {
			b.ok = unix.EpollCtl(int(fd), unix.EPOLL_CTL_ADD, int(socket), &unix.EpollEvent{}) == nil
		})
	})
	return b.ok
}

// wait returns when the bell rings, or is closed. It reports whether only the timer has rung it.
func (b *bell) wait() (timeout bool) {
	err := b.rc.Read(b.waitFn)
	return err == nil && b.rungBy == theTimer
}

// rung reports whether the bell has rung, and takes note of it.
func (b *bell) rung(fd uintptr) bool {
	var e [1]unix.EpollEvent
	n, err := unix.EpollWait(int(fd), e[:], 0)
	b.rungBy = e[0].Fd
	return n > 0 || err != nil && err != unix.EINTR
}

// ringAfter has the bell ring in any case after some time, or not if that is 0.
func (b *bell) ringAfter(d time.Duration) bool {
	if b.timer < 0 && !b.addTimer() {
		return false
	}
	in := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	return unix.TimerfdSettime(b.timer, 0, &in, nil) == nil
}

func (b *bell) addTimer() bool {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return false
	}
	b.ok = false
	_ = b.rc.Control(func(epfd uintptr) {
		e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: theTimer}
		b.ok = unix.EpollCtl(int(epfd), unix.EPOLL_CTL_ADD, fd, &e) == nil
	})
	if !b.ok {
		_ = unix.Close(fd)
		return false
	}
	b.timer = fd
	return true
}

// arm has the bell ring once when there is something to be read, and at once if there is already. Off, it rings only
// when the peer has ended.
func (b *bell) arm(on bool) bool {
	b.event.Events = unix.EPOLLONESHOT | unix.EPOLLRDHUP
	if on {
		b.event.Events |= unix.EPOLLIN
	}
	b.ok = false
	_ = b.rc.Control(b.armFn)
	return b.ok
}

func (b *bell) control(fd uintptr) {
	b.epfd = int(fd)
	_ = b.socket.Control(b.onFn)
}

func (b *bell) modify(socket uintptr) {
	b.ok = unix.EpollCtl(b.epfd, unix.EPOLL_CTL_MOD, int(socket), &b.event) == nil
}

// close wakes who waits for the bell.
func (b *bell) close() {
	_ = b.file.Close()
	if b.timer >= 0 {
		_ = unix.Close(b.timer)
		b.timer = -1
	}
}
