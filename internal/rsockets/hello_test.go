package rsockets

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// linuxHello is the private data of a client of rdma-core: 384 credits, two entries, half of a ring of 128 KiB.
const linuxHello = `
01                      # version
02                      # flags: maps
0180                    # 384 credits
000000                  # reserved
00                      # no maps
00007f1c58021000        # table
0000a1b2                # its key
00000002                # two entries
00007f1c58000000        # ring
0000a1b1                # its key
00010000                # 64 KiB`

func wantError(t *testing.T, err error, field string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Field != field {
		t.Fatalf("%v: wanted an Error about %q", err, field)
	}
}

func TestHello(t *testing.T) {
	raw := testrig.Bytes(t, linuxHello)
	want := Hello{
		Credits: 384, Table: Place{TO: 0x7F1C58021000, STag: 0xA1B2}, Entries: 2,
		Ring: Entry{Place{TO: 0x7F1C58000000, STag: 0xA1B1}, 65536},
	}
	got, err := ParseHello(raw)
	if err != nil || got != want {
		t.Fatalf("%+v (%v)", got, err)
	}
	if again, _ := want.AppendBinary(nil); !bytes.Equal(again, raw) {
		t.Errorf("%x", again)
	}
	if got.Slot(1) != (Place{0x7F1C58021010, 0xA1B2}) || got.MapSlot(1) != (Place{0x7F1C58021038, 0xA1B2}) {
		t.Errorf("entry 1 at %+v, map 1 at %+v", got.Slot(1), got.MapSlot(1))
	}
}

// TestHelloOurs tells what rdma-core does not: another byte order, maps, and that they cost no credit for good.
func TestHelloOurs(t *testing.T) {
	said := Hello{Big: true, Credits: 16, CountsMaps: true, Maps: 512, Entries: 8, Table: Place{1, 2},
		Ring: Entry{Place{3, 4}, 5}}
	raw, _ := said.AppendBinary(nil)
	if !bytes.Equal(raw[:8], []byte{1, 3, 0, 16, 1, 0, 0, 0x82}) {
		t.Errorf("%x", raw[:8])
	}
	if got, err := ParseHello(raw); err != nil || got != said {
		t.Errorf("%+v (%v)", got, err)
	}
	raw[helloFlags] &^= flagMaps
	if got, err := ParseHello(raw); err != nil || got.Maps != 0 {
		t.Errorf("without the flag: %d maps (%v)", got.Maps, err)
	}
}

func TestMapsSaid(t *testing.T) {
	for n, said := range map[int]int{-1: 0, 0: 0, 1: 1, 128: 128, 129: 128, 255: 128, 256: 256, 767: 512,
		32512: 32512, 1 << 20: 32512} {
		if got := MapsSaid(n); got != said {
			t.Errorf("%d: %d, wanted %d", n, got, said)
		}
	}
}

func TestBadHello(t *testing.T) {
	raw := testrig.Bytes(t, linuxHello)
	for name, spoil := range map[string]func([]byte) []byte{
		"short":       func(b []byte) []byte { return b[:39] },
		"no entries":  func(b []byte) []byte { clear(b[20:24]); return b },
		"ring wraps":  func(b []byte) []byte { copy(b[24:], bytes.Repeat([]byte{0xFF}, 8)); return b },
		"table wraps": func(b []byte) []byte { copy(b[8:], bytes.Repeat([]byte{0xFF}, 8)); return b },
		"table wraps late": func(b []byte) []byte {
			copy(b[8:],
				bytes.Repeat([]byte{0xFF}, 7))
			b[15] = 0xF0
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseHello(spoil(bytes.Clone(raw)))
			wantError(t, err, "private data")
			if errors.Is(err, ErrVersion) {
				t.Errorf("%v", err)
			}
		})
	}
	for _, other := range [][]byte{nil, append([]byte{2}, raw[1:]...)} {
		if _, err := ParseHello(other); !errors.Is(err, ErrVersion) {
			t.Errorf("%x: %v", other, err)
		}
	}
}

func TestWord(t *testing.T) {
	for _, c := range []struct {
		word       Word
		big        bool
		hex, named string
	}{
		{NewWord(OpData, 512), false, "00 02 00 00", "data 512"},
		{NewWord(OpData, 512), true, "00 00 02 00", "data 512"},
		{NewWord(OpCredit, 0x181), false, "81 01 00 80", "credit 385"},
		{NewWord(OpMap, 3), false, "03 00 00 c0", "map 3"},
		{NewWord(OpControl, uint32(Shutdown)), false, "02 00 00 e0", "control 2"},
		{NewWord(5, 1), true, "a0 00 00 01", "kind 5 1"},
	} {
		raw := testrig.Bytes(t, c.hex)
		got, err := ParseWord(raw, c.big)
		if err != nil || got != c.word || !bytes.Equal(c.word.Append(nil, c.big), raw) || got.String() != c.named {
			t.Errorf("%s: %v (%v), and back %x", c.hex, got, err, c.word.Append(nil, c.big))
		}
	}
	for _, n := range []int{0, 3, 5} {
		_, err := ParseWord(make([]byte, n), false)
		wantError(t, err, "word")
	}
}

func TestEntry(t *testing.T) {
	e := Entry{Place{TO: 0x0102030405060708, STag: 0x0A0B0C0D}, 0x10000}
	for hex, big := range map[string]bool{
		"0807060504030201 0d0c0b0a 00000100": false,
		"0102030405060708 0a0b0c0d 00010000": true,
	} {
		raw := testrig.Bytes(t, hex)
		if !bytes.Equal(e.Append(nil, big), raw) || entryAt(raw, order(big)) != e {
			t.Errorf("big %v: %x, %+v", big, e.Append(nil, big), entryAt(raw, order(big)))
		}
	}
}

func TestMap(t *testing.T) {
	m := Map{Offset: 0x1000, Entry: Entry{Place{TO: 0x70000, STag: 9}, 0x100}}
	raw := testrig.Bytes(t, "0010000000000000 0000070000000000 09000000 00010000")
	if got, err := ParseMap(raw, false); err != nil || got != m || !bytes.Equal(m.Append(nil, false), raw) {
		t.Errorf("%+v (%v), %x", got, err, m.Append(nil, false))
	}
	for _, c := range []struct {
		offset uint64
		n      int
		to     uint64
		length uint32
	}{
		{0xFFF, 2, 0, 0}, {0x1000, 2, 0x70000, 2}, {0x10F0, 0x20, 0x700F0, 0x10}, {0x1100, 1, 0, 0},
		{0x1000, -1, 0x70000, 0},
	} {
		got, found := m.Find(c.offset, c.n)
		if found != (c.to != 0) || got.TO != c.to || got.Length != c.length {
			t.Errorf("%#x: %+v %v", c.offset, got, found)
		}
	}
	for name, b := range map[string][]byte{
		"short":        raw[:23],
		"address ends": testrig.Bytes(t, "0010000000000000 ffffffffffffffff 09000000 00010000"),
		"offset ends":  testrig.Bytes(t, "ffffffffffffffff 0000070000000000 09000000 00010000"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMap(b, false)
			wantError(t, err, "map")
		})
	}
}

func FuzzHello(f *testing.F) {
	f.Add(testrig.Bytes(f, linuxHello))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHello(b)
		if err != nil {
			return
		}
		raw, _ := h.AppendBinary(nil)
		if again, err := ParseHello(raw); err != nil || again != h {
			t.Errorf("%+v, and again %+v (%v)", h, again, err)
		}
	})
}

func FuzzMap(f *testing.F) {
	f.Add(make([]byte, MapLen), true, uint64(0), 1)
	f.Fuzz(func(t *testing.T, b []byte, big bool, offset uint64, n int) {
		m, err := ParseMap(b, big)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Append(nil, big), b[:MapLen]) {
			t.Errorf("%+v", m)
		}
		if e, ok := m.Find(offset, n); ok && (e.TO < m.TO || e.TO-m.TO+uint64(e.Length) > uint64(m.Length)) {
			t.Errorf("%+v has %+v at %d", m, e, offset)
		}
	})
}

// TestHelloKnown has package ulpdata, which knows a Hello by its shape, say whose it is: rdma-core's and ours, whatever
// is in it.
func TestHelloKnown(t *testing.T) {
	full := Hello{
		Big: true, Credits: 0xFFFF, CountsMaps: true, Maps: 1<<15 - 256, Entries: 1, Table: Place{^uint64(0), 1},
		Ring: Entry{Place{1, ^uint32(0)}, 1},
	}
	least := Hello{Entries: 1, Table: Place{0, 1}, Ring: Entry{Place{0, 1}, 1}}
	all := [][]byte{testrig.Bytes(t, linuxHello)}
	for _, h := range []Hello{full, least} {
		b, err := h.AppendBinary(nil)
		testrig.Must(t, err)
		all = append(all, b)
	}
	for _, b := range all {
		if got := ulpdata.Describe(b); !strings.HasPrefix(got, "like rsockets, 40 bytes") {
			t.Error(got)
		}
	}
}
