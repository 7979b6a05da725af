package target_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// blocks is a Read, Write and the like of namespace 1.
func blocks(lba uint64, n uint32, sgl capsule.SGL) capsule.IO {
	return capsule.IO{SGL: sgl, NSID: 1, LBA: lba, Blocks: n}
}

// on returns what is on the disk.
func (r *rig) on(off int64, n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	_, err := r.disk.ReadAt(b, off)
	must(r.t, err)
	return b
}

// pattern is n bytes that differ from those of other seeds.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}

// TestWays moves data in each way that there is, and not a byte more than was offered.
func TestWays(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.io(r.admin(), 1, 8)
	guard := bytes.Repeat([]byte{0xEE}, memoryLen)

	w.want(capsule.Success, blocks(1, 4, w.put(pattern(2048, 1), 0)).Command(capsule.OpWrite), nil)
	same(t, "a keyed Write", r.on(512, 2048), pattern(2048, 1))
	in := capsule.SGL{Type: capsule.SGLOffset, Address: 16, Length: 1024}
	w.want(capsule.Success, blocks(100, 2, in).Command(capsule.OpWrite), append(make([]byte, 16), pattern(1024, 2)...))
	same(t, "a Write in the capsule", r.on(51200, 1024), pattern(1024, 2))
	in = capsule.SGL{Type: capsule.SGLOffset, Length: 4096}
	w.want(capsule.Success, blocks(200, 8, in).Command(capsule.OpWrite), pattern(4096, 3))
	same(t, "the largest Write in a capsule", r.on(102400, 4096), pattern(4096, 3))

	w.put(guard, 0)
	w.want(capsule.Success, blocks(1, 4, w.keyed(8192, 2048)).Command(capsule.OpRead), nil)
	all := w.get(0, memoryLen)
	same(t, "a Read", all[8192:][:2048], pattern(2048, 1))
	same(t, "what is before it", all[:8192], guard[:8192])
	same(t, "what is after it", all[8192+2048:], guard[8192+2048:])

	const largest = 256 << 10
	w.want(capsule.Success, blocks(1024, largest/512, w.put(pattern(largest, 4), 0)).Command(capsule.OpWrite), nil)
	w.want(capsule.Success, blocks(1024, largest/512, w.keyed(largest, largest)).Command(capsule.OpRead), nil)
	same(t, "as much as there can be", w.get(largest, largest), pattern(largest, 4))
}

// TestInvalidates invalidates exactly the STag of a command that asks for it, also with an error, and after the data.
func TestInvalidates(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.io(r.admin(), 1, 8)
	if got := w.want(capsule.Success, blocks(0, 1, w.keyed(0, 512)).Command(capsule.OpRead),
		nil); got.invalidated != 0 {
		t.Errorf("STag %#x was invalidated unasked", got.invalidated)
	}
	none := capsule.NewCommand(capsule.OpFlush, 1)
	none.SGL.Type = capsule.SGLKeyedInvalidate
	if got := w.want(capsule.Success, none, nil); got.invalidated != 0 {
		t.Errorf("STag %#x of a command without data was invalidated", got.invalidated)
	}
	for name, c := range map[string]struct {
		c    capsule.IO
		op   capsule.Opcode
		want capsule.Status
	}{
		"read":   {blocks(0, 1, capsule.SGL{}), capsule.OpRead, capsule.Success},
		"write":  {blocks(0, 1, capsule.SGL{}), capsule.OpWrite, capsule.Success},
		"failed": {blocks(8192, 1, capsule.SGL{}), capsule.OpWrite, capsule.LBAOutOfRange | capsule.DNR},
	} {
		mr := w.own(pattern(512, 9))
		at := mr.Remote(0)
		c.c.SGL = capsule.SGL{Type: capsule.SGLKeyedInvalidate, Address: at.TO, Length: 512, Key: at.STag}
		if got := w.want(c.want, c.c.Command(c.op), nil); got.invalidated != at.STag || mr.Valid() {
			t.Errorf("%s: STag %#x was invalidated, not %#x", name, got.invalidated, at.STag)
		}
	}
	same(t, "what was written", r.on(0, 512), pattern(512, 9))
}

// TestZeroesAndDiscards clears what it is told to, to the block.
func TestZeroesAndDiscards(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a := r.admin()
	w := r.io(a, 1, 8)
	n, err := capsule.ParseIdentifyNamespace(a.page(capsule.Identify{NSID: 1}))
	must(t, err)
	if n.Deallocated != capsule.DeallocatedZero|capsule.DeallocateByZeroes {
		t.Errorf("DLFEAT %#x", n.Deallocated)
	}
	want := pattern(4<<20, 5)
	_, err = r.disk.WriteAt(want, 0)
	must(t, err)
	zero := func(lba, n int) { clear(want[lba*512:][:n*512]) }
	for _, control := range []uint16{0, capsule.ControlDeallocate, capsule.ControlFUA} {
		i := blocks(uint64(10+control>>8), 3, capsule.SGL{Type: capsule.SGLKeyed})
		i.Control = control
		w.want(capsule.Success, i.Command(capsule.OpWriteZeroes), nil)
		zero(10+int(control>>8), 3)
	}
	ranges := capsule.Range{LBA: 2048, Blocks: 2048}.Append(capsule.Range{LBA: 500, Blocks: 1}.Append(nil))
	ranges = append(capsule.Range{LBA: 7000}.Append(ranges), make([]byte, 4096-48)...) // as long as Linux has it
	in := capsule.DatasetManagement{SGL: capsule.SGL{Type: capsule.SGLOffset, Length: 4096}, NSID: 1, Ranges: 3}
	w.want(capsule.Success, in.Command(), ranges) // nothing is to be deallocated
	same(t, "the disk", r.on(0, len(want)), want)
	in.Deallocate = true
	w.want(capsule.Success, in.Command(), ranges)
	zero(2048, 2048)
	zero(500, 1)
	same(t, "the disk", r.on(0, len(want)), want)
}

// A faulty Backend fails in the way that it is told, and counts flushes.
type faulty struct {
	*Memory
	fail    atomic.Pointer[error]
	flushes atomic.Int32
	gate    atomic.Pointer[chan struct{}] // which is closed when the disk goes on
}

// stop has the disk do nothing until the function is called that it returns.
func (f *faulty) stop() (goOn func()) {
	gate := make(chan struct{})
	f.gate.Store(&gate)
	return func() { f.gate.Store(nil); close(gate) }
}

func (f *faulty) err() error {
	if gate := f.gate.Load(); gate != nil {
		<-*gate
	}
	if e := f.fail.Load(); e != nil {
		return *e
	}
	return nil
}

func (f *faulty) ReadAt(p []byte, off int64) (int, error) {
	if err := f.err(); err != nil {
		return 0, err
	}
	return f.Memory.ReadAt(p, off)
}

func (f *faulty) WriteAt(p []byte, off int64) (int, error) {
	if err := f.err(); err != nil {
		return 0, err
	}
	return f.Memory.WriteAt(p, off)
}

func (f *faulty) WriteZeroes(off, n int64, d bool) error {
	return errors.Join(f.err(), f.Memory.WriteZeroes(off, n, d))
}

func (f *faulty) Discard(int64, int64) error { return f.err() }
func (f *faulty) Flush() error               { f.flushes.Add(1); return f.err() }

// newFaulty is a rig with such a disk.
func newFaulty(t testing.TB) (*rig, *faulty) {
	f := new(faulty)
	r := newRig(t, func(c *Config) {
		f.Memory = c.Namespaces[0].Backend.(*Memory)
		c.Namespaces[0].Backend = f
	})
	return r, f
}

// TestFaults tells the host what a disk could not do, and forbids to try again only what cannot heal. Whoever runs the
// target is told once.
func TestFaults(t *testing.T) {
	t.Parallel()
	var log testrig.Buffer
	disk := new(faulty)
	r := newRig(t, func(c *Config) {
		disk.Memory = c.Namespaces[0].Backend.(*Memory)
		c.Namespaces[0].Backend = disk
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	w := r.io(r.admin(), 1, 8)
	medium := errors.New("a bad block")
	discard := capsule.DatasetManagement{SGL: w.put(capsule.Range{Blocks: 1}.Append(nil), 4096), NSID: 1, Ranges: 1,
		Deallocate: true}.Command()
	write := blocks(0, 1, w.keyed(0, 512)).Command(capsule.OpWrite)
	unread := bytes.Repeat([]byte("unread "), 80)[:512]
	into := w.put(unread, 8192)
	for _, v := range []struct {
		fail error
		c    capsule.Command
		want capsule.Status
	}{
		{medium, write, capsule.WriteFault},
		{medium, blocks(0, 1, into).Command(capsule.OpRead), capsule.ReadError},
		{medium, blocks(0, 1, capsule.SGL{Type: capsule.SGLKeyed}).Command(capsule.OpWriteZeroes), capsule.WriteFault},
		{medium, capsule.NewCommand(capsule.OpFlush, 1), capsule.WriteFault},
		{medium, capsule.NewCommand(capsule.OpFlush, capsule.AllNamespaces), capsule.WriteFault},
		{medium, discard, capsule.WriteFault},
		{errors.ErrUnsupported, discard, capsule.Success},
		{&fs.PathError{Op: "write", Err: syscall.ENOSPC}, write, capsule.CapacityExceeded},
		{&fs.PathError{Op: "write", Err: syscall.EROFS}, write, capsule.WriteProtected | capsule.DNR},
		{&fs.PathError{Op: "write", Err: fs.ErrPermission}, write, capsule.WriteProtected | capsule.DNR},
	} {
		disk.fail.Store(&v.fail)
		w.want(v.want, v.c, nil)
	}
	// and nothing of another command's
	same(t, "the host's memory after a Read that has failed", w.get(8192, 512), unread)
	disk.fail.Store(nil)
	w.want(capsule.Success, write, nil)
	if told := log.String(); strings.Count(told, "\n") != 1 || !strings.Contains(told, `msg="disk failed"`) ||
		!strings.Contains(told, `namespace=1 command=Write error="a bad block"`) {
		t.Errorf("it was told %q", told)
	}
	if s := r.target.Stats(); s.Faults != 9 || s.Controllers != 1 || s.Queues != 2 || s.Commands < 11 {
		t.Errorf("%+v", s)
	}
}

// TestDurable flushes when it is told to, and for a Write with FUA before that completes.
func TestDurable(t *testing.T) {
	t.Parallel()
	r, disk := newFaulty(t)
	w := r.io(r.admin(), 1, 8)
	flushes := func(n int32, what string) {
		t.Helper()
		if got := disk.flushes.Load(); got != n {
			t.Errorf("%d flushes after %s, not %d", got, what, n)
		}
	}
	write := blocks(0, 1, w.keyed(0, 512))
	w.want(capsule.Success, write.Command(capsule.OpWrite), nil)
	flushes(0, "a Write")
	write.Control = capsule.ControlFUA
	w.want(capsule.Success, write.Command(capsule.OpWrite), nil)
	flushes(1, "a Write with FUA")
	w.want(capsule.Success, capsule.NewCommand(capsule.OpFlush, 1), nil)
	flushes(2, "a Flush")
	w.want(capsule.Success, capsule.NewCommand(capsule.OpFlush, capsule.AllNamespaces), nil)
	flushes(3, "a Flush of all")
	write.SGL = capsule.SGL{Type: capsule.SGLKeyed}
	w.want(capsule.Success, write.Command(capsule.OpWriteZeroes), nil)
	flushes(4, "zeroes with FUA")
}
