package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxExpansion is how many bytes each compressed byte may stand for, beyond expansionFree. Captures of zeros in
	// large segments come to 2000 with Zstandard; gzip reaches 1032 at most.
	maxExpansion  = 4096
	expansionFree = 64 << 20

	// maxZstdWindow is what zstdcat takes without being asked, 128 MiB.
	maxZstdWindow = 128 << 20
)

const gzipMagic = "\x1f\x8b"

// compressions are those that are read, by the bytes that they begin with.
var compressions = []struct {
	name, magic string
	open        func(io.Reader) (io.Reader, error)
}{
	{"gzip", gzipMagic, newGzipReader},
	{"Zstandard", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
	}},
}

// An expander reads a file, decompressed if it is compressed. It looks at the file when it is read first.
type expander struct {
	from io.Reader
	in   int64 // bytes read of from

	to   io.Reader // what is read of, once it is known
	name string    // of the compression, empty if there is none
	out  int64     // decompressed bytes
	rest bool      // something follows that is not compressed so
}

// Read reads what is in the file.
func (e *expander) Read(p []byte) (int, error) {
	if e.to == nil {
		if err := e.begin(); err != nil {
			return 0, err
		}
	}
	n, err := e.to.Read(p)
	if e.name == "" {
		return n, err
	}
	e.out += int64(n)
	if e.out > 0 && (errors.Is(err, errRest) || errors.Is(err, zstd.ErrMagicMismatch)) {
		e.rest, err = true, io.EOF
	}
	if e.out > expansionFree+maxExpansion*e.in {
		return 0, fmt.Errorf("%s expands each byte to more than %d, which no capture does: if it is one all the same, decompress it first", e.name, maxExpansion)
	}
	return n, e.about(err)
}

// about names the compression in an error. A file that is cut off later is so as any capture.
func (e *expander) about(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF) && e.out > 0, errors.Is(err, io.ErrUnexpectedEOF) && e.out > 0:
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the file is empty or cut off", e.name)
	}
	return fmt.Errorf("%s: %w", e.name, err)
}

// begin looks at the beginning.
func (e *expander) begin() error {
	head := make([]byte, 4)
	n, err := io.ReadFull(e.from, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	e.in = int64(n)
	e.to = io.MultiReader(bytes.NewReader(head[:n]), e.from)
	for _, c := range compressions {
		if bytes.HasPrefix(head[:n], []byte(c.magic)) {
			e.name = c.name
			e.to, err = c.open(io.MultiReader(bytes.NewReader(head[:n]), (*counted)(e)))
			return e.about(err)
		}
	}
	return nil
}

// errRest is the end of gzip data behind which something else follows.
var errRest = errors.New("what follows is not gzip")

// A gzipReader reads the members of a file of gzip.
type gzipReader struct {
	*gzip.Reader
	from *bufio.Reader
}

func newGzipReader(r io.Reader) (io.Reader, error) {
	from := bufio.NewReader(r)
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipReader{z, from}, nil
}

// Read goes on with the next member at the end of one.
func (g *gzipReader) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 { // a member may be empty
		if n, err = g.Reader.Read(p); errors.Is(err, io.EOF) {
			err = g.next()
		}
	}
	return n, err
}

// next begins with the next member.
func (g *gzipReader) next() error {
	switch head, _ := g.from.Peek(len(gzipMagic)); {
	case len(head) == 0:
		return io.EOF
	case string(head) != gzipMagic:
		return errRest
	}
	err := g.Reset(g.from)
	g.Multistream(false)
	return err
}

// counted counts what is read of the file.
type counted expander

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.in += int64(n)
	return n, err
}
