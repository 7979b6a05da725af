package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// The first four bytes of a pcap file, in its own byte order.
const (
	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34 // Kuznetzov's, with longer records
)

// magicLen is how many bytes tell pcap and pcapng apart, and from all others.
const magicLen = 4

// sniff reads a file's header.
func sniff(w *window) (format, error) {
	b, err := w.peek(magicLen)
	if errors.Is(err, io.EOF) {
		return nil, &FormatError{"an empty file"}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &FormatError{fmt.Sprintf("% x and no more", w.buffered(magicLen))}
	}
	if err != nil {
		return nil, err
	}
	if binary.BigEndian.Uint32(b) == blockSection {
		return newPcapng(w)
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(b) {
		case magicMicro:
			return newPcap(w, order, time.Microsecond)
		case magicNano:
			return newPcap(w, order, time.Nanosecond)
		case magicModified:
			return nil, &FormatError{"a modified pcap of old Linux; editcap -F pcapng converts it"}
		}
	}
	return nil, &FormatError{identify(w.buffered(64))}
}

// others are files that may be mistaken for a capture.
var others = []struct{ magic, name string }{
	{"\x1f\x8b", "gzip, to be decompressed first (gunzip -c FILE |)"},
	{"\x28\xb5\x2f\xfd", "Zstandard, to be decompressed first (zstdcat FILE |)"},
	{"\xfd7zXZ\x00", "xz, to be decompressed first (xzcat FILE |)"},
	{"BZh", "bzip2, to be decompressed first (bzcat FILE |)"},
	{"\x04\x22\x4d\x18", "LZ4, to be decompressed first (lz4cat FILE |)"},
	{"PK\x03\x04", "a zip archive, to be unpacked first"},
	{"snoop\x00\x00\x00", "a snoop capture; editcap -F pcapng converts it"},
	{"GMBU", "a Network Monitor capture; editcap -F pcapng converts it"},
	{"\x7fELF", "a program (ELF)"},
}

// identify says what a file is that begins with b.
func identify(b []byte) string {
	for _, o := range others {
		if bytes.HasPrefix(b, []byte(o.magic)) {
			return o.name
		}
	}
	if isText(b) {
		line, _, _ := strings.Cut(string(b), "\n")
		return fmt.Sprintf("text, beginning with %.40q", line)
	}
	return fmt.Sprintf("it begins with % x", b[:min(len(b), 8)])
}

// isText reports whether the beginning of a file is printable. A rune may be cut at
// its end.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && utf8.FullRune(b) || r < ' ' && !strings.ContainsRune("\t\r\n", r) {
			return false
		}
		b = b[n:]
	}
	return true
}
