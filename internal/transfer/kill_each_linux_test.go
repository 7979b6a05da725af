package transfer

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// changes are the system calls by which a process changes what is in directories and files.
var changes = []uint64{unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT,
	unix.SYS_SYMLINKAT, unix.SYS_FCHMOD,
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT, unix.SYS_FTRUNCATE, unix.SYS_PWRITE64}

// A syscallInfo is struct ptrace_syscall_info, as it is at a call's beginning.
type syscallInfo struct {
	op   uint8
	_    [7]uint8
	_    [2]uint64
	nr   uint64
	args [6]uint64
	_    [2]uint64
}

// changing reports whether a thread is about to change a file.
func changing(thread int) bool {
	const getSyscallInfo, entry = 0x420e, 1
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(thread), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 || info.op != entry {
		return false
	}
	return slices.Contains(changes, info.nr) || info.nr == unix.SYS_OPENAT && info.args[2]&unix.O_CREAT != 0
}

// A traced process is killed just before one of the calls with which it changes files.
type traced struct {
	out  *os.File     // what it prints
	done chan int     // how many such calls it made
	kill func() error // at any time
}

// trace starts a child that is killed before its n-th change.
func trace(t *testing.T, n int, role, dir, addr string) *traced {
	t.Helper()
	out, in, err := os.Pipe()
	testrig.Must(t, err)
	t.Cleanup(func() { _ = out.Close() })
	self, err := os.Executable()
	testrig.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir, childAddr+"="+addr)
	cmd.Stdout = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p, started := &traced{out: out, done: make(chan int, 1)}, make(chan error)
	go func() {
		runtime.LockOSThread() // the thread that starts it traces it, and ends with it
		err := cmd.Start()
		_ = in.Close()
		started <- err
		if err == nil {
			p.done <- follow(cmd.Process.Pid, n)
		}
	}()
	testrig.Must(t, <-started)
	p.kill = func() error { return unix.Kill(cmd.Process.Pid, unix.SIGKILL) }
	return p
}

// follow has a process run until its n-th change, and kills it there. It returns how many there were before its end.
func follow(pid, n int) (count int) {
	options := unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	for first := true; ; first = false {
		var status unix.WaitStatus
		thread, err := unix.Wait4(-pid, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, thread == pid && !status.Stopped():
			return count
		case !status.Stopped():
			continue
		}
		if first {
			_ = unix.PtraceSetOptions(pid, options)
		}
		sig := 0
		switch stop := status.StopSignal(); {
		case stop == unix.SIGTRAP|0x80:
			if changing(thread) {
				if count++; count == n {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		case stop != unix.SIGTRAP && stop != unix.SIGSTOP:
			sig = int(stop)
		}
		_ = unix.PtraceSyscall(thread, sig)
	}
}

// A killing is a copy whose receiver is killed.
type killing struct {
	*rig
	way   string
	force bool
}

// tree is what is copied, in part with modes that its owner cannot write to. A server makes no links.
func (k *killing) tree() []string {
	names := []string{"d", "d/big", "d/empty", "d/none", "d/sub", "d/sub/file"}
	if k.way == "get" {
		names = append(names, "d/link")
	}
	return names
}

// fill makes the tree, and what is at the other end: somebody's own directory and files.
func (k *killing) fill() {
	from, to := k.from(k.way), k.to(k.way)
	soft(k.t, from, to)
	made(k.t, randomBytes(1<<20+5, 31), from, "d", "big")
	made(k.t, nil, from, "d", "none")
	made(k.t, randomBytes(7, 32), from, "d", "sub", "file")
	testrig.Must(k.t, os.Mkdir(filepath.Join(from, "d", "empty"), 0o700))
	if k.way == "get" {
		testrig.Must(k.t, os.Symlink("big", filepath.Join(from, "d", "link")))
	}
	for name, mode := range map[string]fs.FileMode{"d/none": 0o440, "d/sub": 0o550, "d/empty": 0o711, "d": 0o555} {
		testrig.Must(k.t, os.Chmod(filepath.Join(from, name), mode))
	}
	for _, name := range []string{"d/empty", "d/sub", "d"} {
		testrig.Must(k.t, os.Chtimes(filepath.Join(from, name), long, long))
	}
	made(k.t, randomBytes(9, 33), to, "own", "file")
	if k.force {
		made(k.t, randomBytes(1<<20+5, 34), to, "d", "big")
		testrig.Must(k.t, os.Symlink("elsewhere", filepath.Join(to, "d", "link")))
	}
}

// run copies, with the receiver in a process that is killed before its n-th change, and returns how many changes there
// were.
func (k *killing) run(n int) int {
	role := "tree"
	if k.force {
		role = "force"
	}
	if k.way == "get" {
		s := start(k.t, "serve", k.there, "")
		defer s.kill()
		p := trace(k.t, n, role, k.here, s.line(k.t))
		return <-p.done
	}
	p := trace(k.t, n, "serve", k.there, "")
	line := make([]byte, 64)
	size, err := p.out.Read(line)
	testrig.Must(k.t, err)
	addr := strings.TrimSpace(string(line[:size]))
	_ = k.put("d", resume, recursive, k.forces, func(c *Client) { c.Dial = dialTo(addr) })
	_ = p.kill()
	return <-p.done
}

func (k *killing) forces(c *Client) { c.Force = k.force }

// foreign wants what is somebody else's as it was, and each file of the tree that has its name to be whole.
func (k *killing) foreign() {
	has(k.t, randomBytes(9, 33), k.to(k.way), "own", "file")
	k.whole("d/big", randomBytes(1<<20+5, 31))
	k.whole("d/sub/file", randomBytes(7, 32))
	link, err := os.Readlink(filepath.Join(k.to(k.way), "d", "link"))
	if (err == nil || k.force) && link != "elsewhere" && link != "big" {
		k.t.Errorf("there is a link to %q (%v)", link, err)
	}
}

// whole wants a file to be what is copied, or with --force what was there before.
func (k *killing) whole(name string, data []byte) {
	got, err := os.ReadFile(filepath.Join(k.to(k.way), name))
	if errors.Is(err, fs.ErrNotExist) && !k.force || errors.Is(err, fs.ErrNotExist) && name != "d/big" {
		return
	}
	testrig.Must(k.t, err)
	if !slices.Equal(got, data) && (!k.force || !slices.Equal(got, randomBytes(1<<20+5, 34))) {
		k.t.Errorf("%s has %d bytes that are of no file", name, len(got))
	}
}

// others are what was there.
func (k *killing) others() []string {
	if k.force && k.way == "put" {
		return []string{"own", "own/file", "d/link"}
	}
	return []string{"own", "own/file"}
}

// same wants the tree to be at the other end, with all modes and times, and nothing else than what was there.
func (k *killing) same() {
	k.foreign()
	lists(k.t, k.to(k.way), append(k.others(), k.tree()...)...)
	for _, name := range k.tree() {
		want, err := os.Stat(filepath.Join(k.from(k.way), name))
		testrig.Must(k.t, err)
		got, err := os.Stat(filepath.Join(k.to(k.way), name))
		testrig.Must(k.t, err)
		if k.force && name == "d" {
			continue // it was there, and keeps its own
		}
		if got.Mode() != want.Mode() || got.Size() != want.Size() && !got.IsDir() ||
			!got.ModTime().Equal(want.ModTime()) {
			k.t.Errorf("%s: %v %d %v, and the source has %v %d %v",
				name, got.Mode(), got.Size(), got.ModTime(), want.Mode(), want.Size(), want.ModTime())
		}
	}
}

// goOn copies once more, with nobody killed.
func (k *killing) goOn() {
	if k.way == "get" {
		testrig.Must(k.t, k.get("d", resume, recursive, k.forces))
	} else {
		testrig.Must(k.t, k.put("d", resume, recursive, k.forces))
	}
}

// TestKilledBeforeEachChange kills the receiver of a tree before each of the calls with which it changes a file or a
// directory, in turn, and goes on each time with another one: the tree is the same then, and what was somebody else's
// has stayed. Without IWARP_ALL each sixteenth is tried, another one in each of the ways.
func TestKilledBeforeEachChange(t *testing.T) {
	n, step := 0, 16
	if testrig.Everything() {
		step = 1
	}
	for _, way := range []string{"put", "get"} {
		for _, force := range []bool{false, true} {
			n = min(n+4, step)
			count := killEach(t, killing{way: way, force: force}, n, step)
			if t.Logf("%s, force %v: %d changes", way, force, count); count < 30 {
				t.Errorf("%s, force %v: it was not seen to make more than %d changes", way, force, count)
			}
		}
	}
}

// killEach kills the receiver of a copy before its n-th change, and each one that is so many later, until there is
// none. It returns how many there were.
func killEach(t *testing.T, k killing, n, step int) int {
	for ; ; n += step {
		k.rig = newRig(t)
		k.fill()
		count := k.run(n)
		k.foreign()
		k.goOn()
		k.same()
		if t.Failed() {
			t.Fatalf("%s, force %v: killed before change %d", k.way, k.force, n)
		}
		if count < n {
			return count
		}
	}
}
