package pcapfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/filelock"
	"github.com/goiwarp/iwarp/internal/pcapfile"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// pcapng is a capture without packets.
func pcapng(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.WriterConfig{})
	testrig.Must(t, err)
	testrig.Must(t, w.Flush())
	return b.Bytes()
}

// TestOpen replaces captures and empty files, and leaves alone what is neither, and what a link leads to.
func TestOpen(t *testing.T) {
	old := []byte("what somebody needs")
	for _, c := range []struct {
		name string
		has  []byte // nil: there is no file
		good bool
	}{
		{"new", nil, true}, {"empty", []byte{}, true}, {"pcapng", pcapng(t), true},
		{"pcap", append([]byte("\xd4\xc3\xb2\xa1\x02\x00\x04\x00"), make([]byte, 16)...), true},
		{"text", old, false}, {"begins like one", []byte("\x0a\x0d\x0d\x0a"), false},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if c.has != nil {
			testrig.Must(t, os.WriteFile(path, c.has, 0o640))
		}
		f, err := pcapfile.Create(path)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, err := os.ReadFile(path); !c.good &&
			(err != nil || !bytes.Equal(got, c.has)) || c.good && len(got) > 0 {
			t.Errorf("%s: it has %q, %v", c.name, got, err)
		}
		if err == nil {
			testrig.Must(t, f.Close())
		}
	}
}

// TestMode has a new capture be its owner's alone, whatever the umask.
func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such modes")
	}
	path := filepath.Join(t.TempDir(), "f")
	f, err := pcapfile.Open(path)
	testrig.Must(t, err)
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestLinks has links to a capture, to nothing and to another file be refused, and nothing come to be where they lead.
func TestLinks(t *testing.T) {
	for _, has := range [][]byte{nil, {}, pcapng(t), []byte("what somebody needs")} {
		dir := t.TempDir()
		path, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
		if has != nil {
			testrig.Must(t, os.WriteFile(target, has, 0o600))
		}
		if err := os.Symlink(target, path); err != nil {
			t.Skip(err)
		}
		if f, err := pcapfile.Create(path); err == nil {
			_ = f.Close()
			t.Errorf("a link to %q is followed", has)
		}
		got, err := os.ReadFile(target)
		if missing := errors.Is(err, fs.ErrNotExist); missing != (has == nil) || !bytes.Equal(got, has) {
			t.Errorf("the target has %q, %v", got, err)
		}
	}
}

// TestWritten has a capture that is being written not be replaced, nor be looked at in vain.
func TestWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := pcapfile.Create(path)
	testrig.Must(t, err)
	_, err = f.Write(pcapng(t))
	testrig.Must(t, err)
	if _, err := pcapfile.Create(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("a second writer has %v", err)
	}
	again, err := pcapfile.Open(path)
	testrig.Must(t, err)
	testrig.Must(t, errors.Join(again.Close(), f.Close()))
	f, err = pcapfile.Create(path)
	testrig.Must(t, err)
	testrig.Must(t, f.Close())
}
