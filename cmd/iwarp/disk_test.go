package main

import (
	"os"
	"path/filepath"
	"testing"
)

// nqnOf is the name that a disk has by default, of which its serial number is made.
func nqnOf(t *testing.T, disk string) string {
	t.Helper()
	c := &diskCmd{Disk: []string{disk}, BlockSize: 512, ids: make([][16]byte, 1)}
	all, err := c.namespaces()
	if err != nil {
		t.Fatal(err)
	}
	defer closeDisks(all)
	return defaultNQN(all[0], disk)
}

// TestDiskNames has disks of one name in two directories be two, and the same after a restart, however the path is written. One in memory is never the same.
func TestDiskNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "disk"), make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	a, again, b := nqnOf(t, filepath.Join("a", "disk")), nqnOf(t, filepath.Join(here, "a", "disk")), nqnOf(t, filepath.Join("b", "disk"))
	if a != again || a == b {
		t.Errorf("%s, %s, %s", a, again, b)
	}
	if one, two := nqnOf(t, "1M"), nqnOf(t, "1M"); one == two {
		t.Error("two disks in memory have one name")
	}
}
