package target_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

const diskLen = 3<<20 + 4096

// newFile is a disk in a file.
func newFile(t testing.TB, readOnly bool) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	must(t, Create(path, diskLen, 4096))
	f, err := OpenFile(path, 512, readOnly)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, path
}

// TestBackends has each kind of disk hold what was written, and read as zero what was cleared.
func TestBackends(t *testing.T) {
	t.Parallel()
	memory, err := NewMemory(diskLen, 512)
	must(t, err)
	file, _ := newFile(t, false)
	for name, disk := range map[string]Backend{"memory": memory, "file": file} {
		t.Run(name, func(t *testing.T) {
			want := make([]byte, diskLen)
			rapid.Check(t, func(rt *rapid.T) {
				off := rapid.Int64Range(0, diskLen/512-1).Draw(rt, "block") * 512
				n := rapid.Int64Range(1, (diskLen-off)/512).Draw(rt, "blocks") * 512
				switch rapid.IntRange(0, 3).Draw(rt, "what") {
				case 0:
					clear(want[off:][:n])
					must(rt, disk.WriteZeroes(off, n, rapid.Bool().Draw(rt, "deallocate")))
				case 1:
					err := disk.Discard(off, n)
					if disk.(Zeroing).DiscardsToZero() {
						must(rt, err)
						clear(want[off:][:n])
					} else if !errors.Is(err, errors.ErrUnsupported) {
						rt.Fatal(err)
					}
				default:
					copy(want[off:][:n], pattern(int(n), byte(off>>9)))
					_, err := disk.WriteAt(want[off:][:n], off)
					must(rt, err)
				}
				must(rt, disk.Flush())
				got := bytes.Repeat([]byte{0xAA}, diskLen)
				_, err := disk.ReadAt(got, 0)
				must(rt, err)
				same(t, name, got, want)
			})
		})
	}
}

// TestFile keeps what is in a file, refuses what no disk is, and tells of a file that becomes shorter.
func TestFile(t *testing.T) {
	t.Parallel()
	f, path := newFile(t, false)
	_, err := f.WriteAt(pattern(4096, 1), 8192)
	must(t, err)
	must(t, f.Close())
	if err := Create(path, diskLen, 512); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that is there was made again: %v", err)
	}
	again, err := OpenFile(path, 4096, true)
	must(t, err)
	got := make([]byte, 4096)
	_, err = again.ReadAt(got, 8192)
	must(t, err)
	same(t, "the file", got, pattern(4096, 1))
	if again.Size() != diskLen || again.BlockSize() != 4096 || again.Flush() != nil {
		t.Errorf("%d bytes in blocks of %d", again.Size(), again.BlockSize())
	}
	if _, err := again.WriteAt(got, 0); err == nil {
		t.Error("a disk that is read only was written to")
	}
	must(t, os.Truncate(path, 4096+100))
	if _, err := again.ReadAt(got, 4096); !errors.Is(err, io.EOF) {
		t.Errorf("a file that has become shorter: %v", err)
	}
	must(t, again.Close())
	for _, size := range []int64{0, 100, 4096 + 512} {
		must(t, os.Truncate(path, size))
		if _, err := OpenFile(path, 4096, false); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
}

// TestFileInUse has a file that is written to be of one disk, and one that is read of any number.
func TestFileInUse(t *testing.T) {
	t.Parallel()
	writes, path := newFile(t, false)
	for _, readOnly := range []bool{false, true} {
		if _, err := OpenFile(path, 512, readOnly); !errors.Is(err, ErrInUse) {
			t.Errorf("read only: %t: a disk that another writes to: %v", readOnly, err)
		}
	}
	must(t, writes.Close())
	for range 2 {
		reads, err := OpenFile(path, 512, true)
		must(t, err)
		defer reads.Close()
	}
	if _, err := OpenFile(path, 512, false); !errors.Is(err, ErrInUse) {
		t.Errorf("a disk that others read: %v", err)
	}
}

// TestMemoryBounds refuses sizes that no disk has, and accesses beyond the end.
func TestMemoryBounds(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		size  int64
		block int
	}{{0, 512}, {-512, 512}, {1000, 512}, {512, 4096}, {4096, 1024}, {4096, 0},
		{MaxMemory + 512, 512}, {1<<62 - 4096, 4096}} {
		if _, err := NewMemory(v.size, v.block); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	m, err := NewMemory(4096, 512)
	must(t, err)
	for _, off := range []int64{-512, 512, 4096, 1<<63 - 1} {
		b := make([]byte, 4096)
		_, reads := m.ReadAt(b, off)
		_, writes := m.WriteAt(b, off)
		for _, err := range []error{reads, writes, m.Discard(off, 4096), m.WriteZeroes(off, 4096, false)} {
			if !errors.Is(err, io.EOF) {
				t.Errorf("at %d: %v", off, err)
			}
		}
	}
}

// TestConfig refuses what cannot be.
func TestConfig(t *testing.T) {
	t.Parallel()
	disk, err := NewMemory(4096, 512)
	must(t, err)
	for name, change := range map[string]func(*Config){
		"no name":         func(c *Config) { c.NQN = "" },
		"a name of ours":  func(c *Config) { c.NQN = "disk" },
		"discovery":       func(c *Config) { c.NQN = "nqn.2014-08.org.nvmexpress.discovery" },
		"too long a name": func(c *Config) { c.NQN += string(make([]byte, 200)) },
		"no disk":         func(c *Config) { c.Namespaces = []Namespace{{}} },
		"queues":          func(c *Config) { c.Queues = 1025 },
		"fewer queues":    func(c *Config) { c.Queues = -1 },
		"entries":         func(c *Config) { c.QueueDepth = 1 },
		"controllers":     func(c *Config) { c.Controllers = -1 },
		"in the capsule":  func(c *Config) { c.InCapsule = 1025 },
		"no Connect":      func(c *Config) { c.InCapsule = 512 },
		"data":            func(c *Config) { c.MaxData = 12 << 10 },
		"little data":     func(c *Config) { c.MaxData = 4 << 10 },
		"patience":        func(c *Config) { c.ReadTimeout = -1 },
		"one name twice":  func(c *Config) { c.Namespaces = []Namespace{{Backend: disk, Name: "2"}, {Backend: disk}} },
		"one UUID twice": func(c *Config) {
			c.Namespaces = []Namespace{{Backend: disk, UUID: [16]byte{1}}, {Backend: disk, UUID: [16]byte{1}}}
		},
	} {
		c := Config{NQN: nqn, Namespaces: []Namespace{{Backend: disk}}}
		if _, err := New(c); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := New(c); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
