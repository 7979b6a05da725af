package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// gzipped and zstandard compress.
func gzipped(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	testrig.Must(t, err)
	testrig.Must(t, w.Close())
	return out.Bytes()
}

func zstandard(t *testing.T, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	testrig.Must(t, err)
	return w.EncodeAll(b, nil)
}

// decodeBytes decodes a file of bytes.
func decodeBytes(t *testing.T, b []byte) (status int, out, errs string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "capture")
	testrig.Must(t, os.WriteFile(name, b, 0o600))
	var text, said bytes.Buffer
	status = run([]string{"decode", "-v", name}, streams{&text, &said})
	return status, text.String(), said.String()
}

// TestDecodeCompressed reads compressed captures as those that are not, also if they are in two parts.
func TestDecodeCompressed(t *testing.T) {
	file, err := os.ReadFile("../../interop/testdata/captures/siw-rping.pcap")
	testrig.Must(t, err)
	half := len(file) / 2
	_, want, _ := decodeBytes(t, file)
	for name, b := range map[string][]byte{
		"gzip": gzipped(t, file), "zstd": zstandard(t, file),
		"two of gzip": append(gzipped(t, file[:half]), gzipped(t, file[half:])...),
		"empty ones":  append(bytes.Repeat(gzipped(t, nil), 300), gzipped(t, file)...),
		"two of zstd": append(zstandard(t, file[:half]), zstandard(t, file[half:])...),
	} {
		if status, out, errs := decodeBytes(t, b); status != statusFine || out != want {
			t.Errorf("%s: status %d\n%s%s", name, status, out, errs)
		}
	}
}

// TestDecodeCompressedRest reads a compressed capture behind which something else stands, and says so.
func TestDecodeCompressedRest(t *testing.T) {
	file, err := os.ReadFile("../../interop/testdata/captures/siw-rping.pcap")
	testrig.Must(t, err)
	_, want, _ := decodeBytes(t, file)
	for name, c := range map[string]struct {
		file []byte
		said string
	}{
		"zeros":  {append(gzipped(t, file), make([]byte, 512)...), "what follows the gzip data is not gzip: it was left out"},
		"a byte": {append(gzipped(t, file), 'x'), "what follows the gzip data is not gzip: it was left out"},
		"zstd":   {append(zstandard(t, file), "some text"...), "what follows the Zstandard data is not Zstandard: it was left out"},
	} {
		if status, out, errs := decodeBytes(t, c.file); status != statusFine || out != want || errs != "iwarp: decode: "+c.said+"\n" {
			t.Errorf("%s: status %d\n%s%s", name, status, out, errs)
		}
	}
}

// TestDecodeCompressedBadly has compressed captures that are cut off, damaged, something else, or far too large.
func TestDecodeCompressedBadly(t *testing.T) {
	file, err := os.ReadFile("../../interop/testdata/captures/siw-rping.pcap")
	testrig.Must(t, err)
	gz, zst := gzipped(t, file), zstandard(t, file)
	damaged := bytes.Clone(gz)
	damaged[len(damaged)-5] ^= 1 // in the checksum
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"gzip cut off":   {gz[:len(gz)/2], "capture: cut off in packet "},
		"zstd cut off":   {zst[:len(zst)/2], "Zstandard: the file is empty or cut off"},
		"gzip damaged":   {damaged, ": gzip: invalid checksum"},
		"zstd damaged":   {append(bytes.Clone(zst[:8]), bytes.Repeat([]byte{0xff}, 100)...), "Zstandard: invalid input"},
		"no gzip":        {[]byte("\x1f\x8bnothing else"), ": gzip: invalid header"},
		"two bytes":      {[]byte("\x1f\x8b"), "gzip: the file is empty or cut off"},
		"text in gzip":   {gzipped(t, []byte("some text")), `neither pcap nor pcapng: text, beginning with "some text"`},
		"gzip in gzip":   {gzipped(t, gz), "neither pcap nor pcapng: gzip, to be decompressed first"},
		"zeros for ever": {zeros(), "Zstandard expands each byte to more than 4096, which no capture does"},
	} {
		if status, _, errs := decodeBytes(t, c.file); status != statusFailed || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
	}
}

// zeros is a pcapng with a long block of zeros, in 200 KB of Zstandard that would be 6 GB.
func zeros() []byte {
	b := []byte("\x28\xb5\x2f\xfd\x00\x70") // with a window of 16 MiB
	b = append(b, 36<<3&0xff, 36>>5, 0)     // a raw block
	b = append(b, "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"...)
	b = append(b, "\x0b\x00\x00\x00\xfc\xff\xff\xff"...)
	const length = 1 << 17
	for range 50_000 { // a byte to be repeated
		b = append(b, length<<3&0xff|1<<1, length>>5&0xff, length>>13, 0)
	}
	return append(b, 1, 0, 0)
}

// FuzzExpander expands anything, within bounds.
func FuzzExpander(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x70\x02\x00\x10\x00"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &expander{from: bytes.NewReader(b)}
		n, _ := io.Copy(io.Discard, e)
		if n > expansionFree+maxExpansion*int64(len(b)) {
			t.Errorf("%d bytes became %d", len(b), n)
		}
	})
}
