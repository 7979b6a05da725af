package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Files of two packets: "abc" of 3 bytes at 1.5 s, and "de" of 9 at 2.000000001 s,
// or 2 s where the file has no nanoseconds.
const (
	headerLittle = ` d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000 `
	pcapLittle   = headerLittle + `
		01000000 20a10700 03000000 03000000 616263
		02000000 00000000 02000000 09000000 6465`
	pcapBig = `
		a1b2c3d4 0002 0004 00000000 00000000 00040000 00000001
		00000001 0007a120 00000003 00000003 616263
		00000002 00000000 00000002 00000009 6465`
	pcapNanoLittle = `
		4d3cb2a1 0200 0400 00000000 00000000 00000400 010000f4   # with a note on the FCS
		01000000 0065cd1d 03000000 03000000 616263
		02000000 01000000 02000000 09000000 6465`
	pcapNanoBig = `
		a1b23c4d 0002 0004 00000000 00000000 00040000 00000001
		00000001 1dcd6500 00000003 00000003 616263
		00000002 00000001 00000002 00000009 6465`

	sectionLittle   = ` 0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000 `
	interfaceLittle = ` 01000000 14000000 0100 0000 00000000 14000000 `
	pcapngLittle    = sectionLittle + interfaceLittle + `
		06000000 24000000 00000000 00000000 60e31600 03000000 03000000 61626300 24000000
		06000000 24000000 00000000 00000000 80841e00 02000000 09000000 64650000 24000000`
	pcapngBig = `
		0a0d0d0a 00000028 1a2b3c4d 0001 0000 ffffffffffffffff
			0004 0002 78790000 0000 0000 00000028    # user application "xy"
		00000001 00000020 0001 0000 00000000
			0009 0001 09000000 0000 0000 00000020    # nanoseconds
		0000000b 00000010 00000000 00000010          # a block that nobody knows
		00000006 00000024 00000000 00000000 59682f00 00000003 00000003 61626300 00000024
		00000006 00000030 00000000 00000000 77359401 00000002 00000009 64650000
			0002 0004 00000001 0000 0000 00000030    # flags
		`
)

// TestOpen reads files of all kinds, whole and byte by byte.
func TestOpen(t *testing.T) {
	const micro, nano = `1 1.5 "abc" 3, 2 2 "de" 9`, `1 1.5 "abc" 3, 2 2.000000001 "de" 9`
	for _, c := range []struct{ name, file, want string }{
		{"pcap, little endian", pcapLittle, micro},
		{"pcap, big endian", pcapBig, micro},
		{"pcap with nanoseconds, little endian", pcapNanoLittle, nano},
		{"pcap with nanoseconds, big endian", pcapNanoBig, nano},
		{"pcapng, little endian", pcapngLittle, micro},
		{"pcapng, big endian", pcapngBig, nano},
		{"no packets", headerLittle, ``},
		{"another section", pcapngLittle + pcapngBig, micro + `, 3 1.5 "abc" 3, 4 2.000000001 "de" 9`},
		{"resolution of 2^-1, from 10 s on", sectionLittle + `
			01000000 2c000000 0100 0000 00000000
				0900 0100 81000000 0e00 0800 0a00000000000000 00000000 2c000000
			06000000 24000000 00000000 00000000 05000000 03000000 03000000 61626300 24000000`, `1 12.5 "abc" 3`},
		{"simple packets", sectionLittle + `
			01000000 14000000 0100 0000 02000000 14000000   # snap length 2
			03000000 14000000 09000000 64650000 14000000
			03000000 14000000 01000000 64000000 14000000`, `1 none "de" 9, 2 none "d" 1`},
		{"obsolete packet", sectionLittle + interfaceLittle + `
			02000000 24000000 0000 ffff 00000000 60e31600 03000000 03000000 61626300 24000000`, `1 1.5 "abc" 3`},
		{"records that count", sectionLittle + interfaceLittle + `
			09000000 10000000 613d620a 10000000
			ad0b0000 10000000 00000000 10000000
			06000000 24000000 00000000 00000000 60e31600 03000000 03000000 61626300 24000000`, `3 1.5 "abc" 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := testrig.Bytes(t, c.file)
			wantPackets(t, bytes.NewReader(file), c.want)
			wantPackets(t, iotest.OneByteReader(bytes.NewReader(file)), c.want)
			wantPackets(t, iotest.DataErrReader(bytes.NewReader(file)), c.want)
		})
	}
}

// wantPackets reads a whole capture.
func wantPackets(t *testing.T, file io.Reader, want string) {
	t.Helper()
	got, err := readAll(file)
	if got != want || err != nil {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

// readAll describes the packets of a capture, and returns the error that ends it,
// if there is one.
func readAll(file io.Reader) (string, error) {
	r, err := capture.Open(file)
	if err != nil {
		return "", err
	}
	var all []string
	for {
		p, err := r.Next()
		if err != nil {
			if again, same := r.Next(); again != nil || same != err {
				return "", fmt.Errorf("after %w, there is packet %v, or %w", err, again, same)
			}
			if err == io.EOF {
				err = nil
			}
			return strings.Join(all, ", "), err
		}
		if p.Link != capture.LinkEthernet {
			return "", fmt.Errorf("packet %d has %v", p.Number, p.Link)
		}
		at := "none"
		if !p.Time.IsZero() {
			at = strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%09d",
				p.Time.Unix(), p.Time.Nanosecond()), "0"), ".")
		}
		all = append(all, fmt.Sprintf("%d %s %q %d", p.Number, at, p.Data, p.OrigLen))
	}
}

// TestOpenOthers has what is no capture.
func TestOpenOthers(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "an empty file"},
		{"abc", "61 62 63 and no more"},
		{"\x1f\x8b\x08\x00\x00", "gzip, to be decompressed first (gunzip -c FILE |)"},
		{"\x28\xb5\x2f\xfd\x00", "Zstandard, to be decompressed first (zstdcat FILE |)"},
		{"\xa1\xb2\xcd\x34", "a modified pcap of old Linux; editcap -F pcapng converts it"},
		{"tcpdump: listening\nmore", `text, beginning with "tcpdump: listening"`},
		{"größe, but cut within a \xc3", `text, beginning with "größe, but cut within a \xc3"`},
		{"\x00\x01\x02\x03\x04\x05\x06\x07\x08", "it begins with 00 01 02 03 04 05 06 07"},
	} {
		_, err := capture.Open(strings.NewReader(c.file))
		var bad *capture.FormatError
		if !errors.As(err, &bad) || bad.Found != c.want {
			t.Errorf("%q: got %v, want %s", c.file, err, c.want)
		}
	}
}

// TestCutOff cuts files everywhere: what is whole is read, and the error names the
// packet that is not.
func TestCutOff(t *testing.T) {
	for _, text := range []string{pcapLittle, pcapNanoBig, pcapngLittle, pcapngBig} {
		file := testrig.Bytes(t, text)
		for n := 4; n < len(file); n++ {
			got, err := readAll(bytes.NewReader(file[:n]))
			packets := strings.Count(got, `"`) / 2
			var bad *capture.CutOffError
			if errors.As(err, &bad) {
				if want := uint64(packets) + 1; bad.Packet != want || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("cut at %d: %v, want packet %d", n, err, want)
				}
			} else if err != nil {
				t.Errorf("cut at %d: %v", n, err)
			}
		}
	}
}

// TestDamage has files in which no more packets can be found.
func TestDamage(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{`d4c3b2a1 0300 0400 00000000 00000000 00000400 01000000`,
			"packet 1, file offset 0: pcap of version 3.4, want 2.4"},
		{pcapLittle + `01000000 20a10700 ffffffff ffffffff`,
			"packet 3, file offset 61: a packet of 4294967295 captured bytes, more than 1048576"},
		{pcapLittle + `d4c3b2a1 02000400 00000000 00000000 00000400 01000000`,
			"packet 3, file offset 61: another pcap file begins here: mergecap joins captures, in order of time"},
		{`0a0d0d0a 1c000000 00000000 0100 0000 ffffffffffffffff 1c000000`,
			"packet 1, file offset 0: a pcapng section whose byte order is 00 00 00 00"},
		{`0a0d0d0a 1c000000 4d3c2b1a 0200 0100 ffffffffffffffff 1c000000`,
			"packet 1, file offset 0: a pcapng section of version 2.1, want 1.0"},
		{`0a0d0d0a 1b000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000`,
			"packet 1, file offset 0: a Section Header Block of 27 bytes, want 28 at least"},
		{pcapngLittle + `0b000000 08000000`, "packet 3, file offset 120: a block of type 0xb and 8 bytes"},
		{pcapngLittle + `06000000 ffffffff`, "packet 3, file offset 120: a block of type 0x6 and 4294967295 bytes, want 12 to 1114112"},
		{pcapngLittle + `06000000 10000000 00000000 14000000`,
			"packet 3, file offset 120: a block whose length is 16 at its beginning and 20 at its end"},
		{pcapngLittle + `06000000 10000000 00000000 10000000`,
			"packet 3, file offset 120: a packet's block of 4 bytes, want 20 at least"},
		{pcapngLittle + `06000000 20000000 01000000 00000000 00000000 00000000 00000000 20000000`,
			"packet 3, file offset 120: a packet of interface 1 of 1"},
		{pcapngLittle + `06000000 20000000 00000000 00000000 00000000 01000000 01000000 20000000`,
			"packet 3, file offset 120: a packet of 1 captured bytes in a block with room for 0"},
		{pcapngLittle + `03000000 0c000000 0c000000`, "packet 3, file offset 120: a Simple Packet Block of 0 bytes"},
		{pcapngLittle + `03000000 10000000 01000000 10000000`,
			"packet 3, file offset 120: a packet of 1 captured bytes in a block with room for 0"},
		{sectionLittle + `01000000 10000000 01000000 10000000`,
			"packet 1, file offset 28: an Interface Description Block of 4 bytes"},
		{sectionLittle + `01000000 18000000 01000000 00000000 0900 0400 18000000`,
			"packet 1, file offset 28: an interface's option 9 of length 4 where 0 are left"},
		{sectionLittle + `01000000 1c000000 01000000 00000000 0900 0100 14000000 1c000000`,
			"packet 1, file offset 28: an interface's time resolution of 0x14"},
	} {
		_, err := readAll(bytes.NewReader(testrig.Bytes(t, c.file)))
		var bad *capture.DamageError
		if !errors.As(err, &bad) || err.Error() != "capture: damaged at "+c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// TestReadErrors has errors of what is read from, as they are.
func TestReadErrors(t *testing.T) {
	_, err := capture.Open(iotest.ErrReader(io.ErrClosedPipe))
	if err != io.ErrClosedPipe {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
	file := testrig.Bytes(t, pcapLittle)
	got, err := readAll(io.MultiReader(bytes.NewReader(file[:50]), iotest.ErrReader(io.ErrClosedPipe)))
	if want := `1 1.5 "abc" 3`; err != io.ErrClosedPipe || got != want {
		t.Errorf("got %s (%v), want %s (%v)", got, err, want, io.ErrClosedPipe)
	}
	if _, err := readAll(stuck{}); err != io.ErrNoProgress {
		t.Errorf("got %v, want %v", err, io.ErrNoProgress)
	}
}

// stuck reads nothing, for ever.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestGrowing reads a capture while it grows: every packet comes as soon as it is
// whole.
func TestGrowing(t *testing.T) {
	file := testrig.Bytes(t, pcapLittle)
	from, to := io.Pipe()
	defer from.Close()
	part := make(chan []byte)
	go func() {
		for b := range part {
			_, _ = to.Write(b)
		}
		_ = to.Close()
	}()
	part <- file[:24+16+3] // all of the first packet, nothing of the second
	r, err := capture.Open(from)
	testrig.Must(t, err)
	if p, err := r.Next(); err != nil || string(p.Data) != "abc" {
		t.Fatalf("got %v (%v), want the first packet", p, err)
	}
	part <- file[24+16+3:]
	close(part)
	if p, err := r.Next(); err != nil || string(p.Data) != "de" {
		t.Fatalf("got %v (%v), want the second packet", p, err)
	}
}

// TestLargePackets reads what is longer than the reader's buffer.
func TestLargePackets(t *testing.T) {
	file := testrig.Bytes(t, headerLittle)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	for range 3 {
		file = append(file, make([]byte, 8)...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(large)))
		file = binary.LittleEndian.AppendUint32(file, uint32(len(large)))
		file = append(file, large...)
	}
	r := openBytes(t, file)
	for range 3 {
		if p, err := r.Next(); err != nil || !bytes.Equal(p.Data, large) {
			t.Fatal("the packet is not what is in the file:", err)
		}
	}
}
