package perf

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// queueWait returns how long the threads of this process have waited for a CPU: the second
// number of each thread's schedstat.
func queueWait() (sum time.Duration) {
	for _, tid := range threads() {
		text, err := os.ReadFile("/proc/self/task/" + tid + "/schedstat")
		if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
			ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// threads returns the IDs of this process's threads.
func threads() []string {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}

// stolen returns the ticks of all CPUs that the hypervisor gave to other machines: the
// eighth number of the first line of /proc/stat.
func stolen() int64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[8], 10, 64)
	return n
}

// A callCounter counts the system calls of this process.
type callCounter struct{ fds []int }

// newCallCounter returns nil where the system does not let this process count: it takes
// the tracepoint of all system calls, and so root and a mounted tracefs.
func newCallCounter() *callCounter {
	id, err := os.ReadFile("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id")
	if err != nil {
		return nil
	}
	config, err := strconv.ParseUint(strings.TrimSpace(string(id)), 10, 64)
	if err != nil {
		return nil
	}
	c := new(callCounter)
	for _, tid := range threads() {
		n, _ := strconv.Atoi(tid)
		// Threads that this one begins later are counted with it.
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_TRACEPOINT, Config: config, Bits: unix.PerfBitInherit,
			Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		}
		fd, err := unix.PerfEventOpen(&attr, n, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			c.close()
			return nil
		}
		c.fds = append(c.fds, fd)
	}
	return c
}

// count returns the number of calls since the counter was made.
func (c *callCounter) count() (sum int64) {
	if c == nil {
		return 0
	}
	for _, fd := range c.fds {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); err == nil && n == len(b) {
			sum += int64(binary.NativeEndian.Uint64(b[:]))
		}
	}
	return sum
}

// close ends the count, which takes the system some tens of milliseconds.
func (c *callCounter) close() {
	if c == nil {
		return
	}
	for _, fd := range c.fds {
		unix.Close(fd)
	}
}
