package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"
)

// mode is that of an entry's file: nobody's umask decides.
func (e entry) mode() fs.FileMode {
	if e.executable {
		return 0o755
	}
	return 0o644
}

// sorted are entries in the order of their names, so that an archive does not depend on where they came from.
func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// tarball packs entries below a directory, all of one time, and compresses that.
func tarball(top string, at time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&out, gzip.BestCompression) // its header tells neither name nor time
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressor)
	for _, e := range sorted(entries) {
		header := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: top + "/" + e.name,
			Size: int64(len(e.bytes)), Mode: int64(e.mode()), ModTime: at, Uname: "root", Gname: "root"}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.bytes); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), compressor.Close())
	return out.Bytes(), err
}

// zipped packs them for Windows.
func zipped(top string, at time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser,
		error) {
		return flate.NewWriter(to, flate.BestCompression)
	})
	for _, e := range sorted(entries) {
		header := &zip.FileHeader{Name: top + "/" + e.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(e.mode())
		file, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(e.bytes); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
