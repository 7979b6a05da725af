package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A packed file is what an archive has of one.
type packed struct {
	Text string
	Mode fs.FileMode
	Time time.Time
}

// untarred reads a compressed tarball.
func untarred(t *testing.T, data []byte) map[string]packed {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	testrig.Must(t, err)
	files := make(map[string]packed)
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		testrig.Must(t, err)
		text, err := io.ReadAll(r)
		testrig.Must(t, err)
		files[header.Name] = packed{string(text), header.FileInfo().Mode(), header.ModTime.UTC()}
	}
}

// unzipped reads a zip file.
func unzipped(t *testing.T, data []byte) map[string]packed {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	testrig.Must(t, err)
	files := make(map[string]packed)
	for _, f := range r.File {
		file, err := f.Open()
		testrig.Must(t, err)
		text, err := io.ReadAll(file)
		testrig.Must(t, err)
		files[f.Name] = packed{string(text), f.Mode(), f.Modified.UTC()}
	}
	return files
}

// TestPacked: an archive has the names, bytes, rights and the time that it was given, in both formats; and the order
// in which files were found does not show.
func TestPacked(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	entries := []entry{{name: "iwarp", bytes: []byte("the program"), executable: true},
		{name: "README.md", bytes: []byte("text")}, {name: "man/man1/iwarp.1"}}
	want := map[string]packed{
		"iwarp-v1/iwarp":            {"the program", 0o755, at},
		"iwarp-v1/README.md":        {"text", 0o644, at},
		"iwarp-v1/man/man1/iwarp.1": {"", 0o644, at},
	}
	for _, c := range []struct {
		name string
		pack func(string, time.Time, []entry) ([]byte, error)
		read func(*testing.T, []byte) map[string]packed
	}{{"tar.gz", tarball, untarred}, {"zip", zipped, unzipped}} {
		t.Run(c.name, func(t *testing.T) {
			one, err := c.pack("iwarp-v1", at, entries)
			testrig.Must(t, err)
			if diff := cmp.Diff(want, c.read(t, one)); diff != "" {
				t.Error(diff)
			}
			turned := slices.Clone(entries)
			slices.Reverse(turned)
			// In another zone it is the same time.
			two, err := c.pack("iwarp-v1", at.In(time.FixedZone("elsewhere", 3600)), turned)
			testrig.Must(t, err)
			if !bytes.Equal(one, two) {
				t.Errorf("%d and %d bytes, of the same files", len(one), len(two))
			}
			if got := slices.Sorted(maps.Keys(c.read(t, two))); len(got) != len(entries) {
				t.Errorf("%q", got)
			}
		})
	}
}
