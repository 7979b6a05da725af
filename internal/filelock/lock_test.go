//go:build unix || windows

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLocks has two who open a file lock it in all ways, and once more when the first has closed it.
func TestLocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		first, second Kind
		held          bool
	}{{Exclusive, Exclusive, true}, {Exclusive, Shared, true}, {Shared, Exclusive, true}, {Shared, Shared, false}} {
		one, two := open(), open()
		if err := Lock(one, c.first); err != nil {
			t.Fatalf("%+v: the first: %v", c, err)
		}
		if err := Lock(two, c.second); errors.Is(err, ErrHeld) != c.held || !c.held && err != nil {
			t.Errorf("%+v: the second: %v", c, err)
		}
		_ = one.Close()
		if err := Lock(two, Exclusive); err != nil {
			t.Errorf("%+v: after the first: %v", c, err)
		}
		_ = two.Close()
	}
	closed := open()
	_ = closed.Close()
	if err := Lock(closed, Exclusive); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a file that is closed: %v", err)
	}
}
