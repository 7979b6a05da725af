package chunk_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// bytes reads hexadecimal digits, with spaces.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPacket has the bytes of a packet as RFC 9260, sections 3.1 and 3.2, draws them, and takes them apart again.
func TestPacket(t *testing.T) {
	want := unhex(t, "26ab 26ac 01020304 00000000  0b00 0004  0003 0012 00000007 0005 0000 00000010 6869 0000")
	binary.LittleEndian.PutUint32(want[8:], crc32.Checksum(want, crc32.MakeTable(crc32.Castagnoli)))
	d := chunk.Data{TSN: 7, Stream: 5, PPID: 16, Bytes: []byte("hi")}
	h := chunk.Header{Source: 9899, Destination: 9900, Tag: 0x01020304}
	got := h.Packet(chunk.Chunk{Type: chunk.TypeCookieAck}, d.Chunk(chunk.FlagsWhole))
	if !bytes.Equal(got, want) {
		t.Errorf("% x, want\n% x", got, want)
	}
	if back, ok := chunk.ParseHeader(got); !ok || back != h || !chunk.Sealed(got) {
		t.Errorf("%+v, %t", back, ok)
	}
	all, whole := chunk.In(got)
	if len(all) != 2 || !whole || all[0].Type != chunk.TypeCookieAck || all[1].Flags != 3 ||
		all[1].Length != 14 || all[1].Size() != 20 {
		t.Fatalf("%+v, %t", all, whole)
	}
	if back, ok := all[1].Data(); !ok || back.TSN != 7 || back.Stream != 5 || back.PPID != 16 ||
		string(back.Bytes) != "hi" || back.Length != 2 {
		t.Errorf("%+v, %t", back, ok)
	}
}

// TestSealed: one wrong byte anywhere, and the checksum is wrong.
func TestSealed(t *testing.T) {
	p := chunk.Header{Source: 1, Destination: 2, Tag: 3}.Packet(chunk.Chunk{Type: chunk.TypeAbort})
	for i := range p {
		p[i] ^= 0x10
		if chunk.Sealed(p) {
			t.Errorf("byte %d", i)
		}
		p[i] ^= 0x10
	}
	if !chunk.Sealed(p) || chunk.Sealed(p[:11]) || chunk.Sealed(nil) {
		t.Error("the whole packet, or a part of its header")
	}
}

// TestIn takes packets apart that are whole, cut, and no packets.
func TestIn(t *testing.T) {
	p := chunk.Header{}.Packet(chunk.Chunk{Type: chunk.TypeData, Value: []byte("x")},
		chunk.Chunk{Type: chunk.TypeAbort, Flags: 3, Value: []byte("x")})
	for n, want := range map[int]struct {
		chunks int
		whole  bool
	}{len(p): {2, true}, len(p) - 3: {2, true}, len(p) - 4: {1, false}, 21: {1, false}, 20: {1, true}, 17: {1, true},
		16: {0, false}, 12: {0, true}, 5: {0, true}, 0: {0, true}} {
		if got, whole := chunk.In(p[:n]); len(got) != want.chunks || whole != want.whole {
			t.Errorf("%d bytes: %d chunks, whole %t, want %+v", n, len(got), whole, want)
		}
	}
	p[15] = 3 // less than a chunk's head
	if got, whole := chunk.In(p); len(got) > 0 || whole {
		t.Errorf("%+v, whole %t", got, whole)
	}
}

// TestLeast: the least of each thing is whole, and a byte less is not.
func TestLeast(t *testing.T) {
	p := chunk.Header{Tag: 3}.Packet(chunk.Chunk{Type: chunk.TypeCookieAck})
	if all, whole := chunk.In(p); len(p) != chunk.MinLen || len(all) != 1 || all[0].Size() != 4 || !whole {
		t.Errorf("% x is %+v, whole %t", p, all, whole)
	}
	p = chunk.Header{Tag: 3}.Packet()
	if h, ok := chunk.ParseHeader(p); !ok || h.Tag != 3 || !chunk.Sealed(p) {
		t.Errorf("a header alone is %+v, %t", h, ok)
	}
	if _, ok := chunk.ParseHeader(p[:11]); ok {
		t.Error("eleven bytes are a header")
	}
	for less := range 2 {
		d, isData := (&chunk.Chunk{Type: chunk.TypeData, Value: unhex(t, "00000007 0005 0000 00000010")[less:],
			Length: 12 - less}).Data()
		tsn, isAck := (&chunk.Chunk{Type: chunk.TypeShutdown, Value: unhex(t, "00000007")[less:]}).Acknowledged()
		_, window, isSack := (&chunk.Chunk{Type: chunk.TypeSack, Value: unhex(t, "00000007 00000009")[less:]}).Sack()
		if isSack != (less == 0) || isSack && window != 9 {
			t.Errorf("with %d bytes less: SACK %t, %d", less, isSack, window)
		}
		_, err := chunk.ParseSetup(unhex(t, "00000001 000005dc 0002 0003 00000004")[less:])
		if whole := less == 0; isData != whole || isAck != whole || (err == nil) != whole || whole &&
			(d.TSN != 7 || d.Length != 0 || tsn != 7) {
			t.Errorf("with %d bytes less: DATA %+v %t, TSN %d %t, INIT %v", less, d, isData, tsn, isAck, err)
		}
	}
}

// TestSack: a SACK shows the TSN and the window that it has, and takes another window; with a byte less it shows
// neither.
func TestSack(t *testing.T) {
	c := chunk.Chunk{Type: chunk.TypeSack, Value: unhex(t, "00000007 00010000 0000 0000")}
	if tsn, window, ok := c.Sack(); tsn != 7 || window != 1<<16 || !ok {
		t.Errorf("TSN %d, a window of %d, %t", tsn, window, ok)
	}
	c.SetWindow(3)
	if tsn, window, ok := c.Sack(); tsn != 7 || window != 3 || !ok {
		t.Errorf("with another window: TSN %d, a window of %d, %t", tsn, window, ok)
	}
	c.Value = c.Value[:7]
	if tsn, window, ok := c.Sack(); tsn != 0 || window != 0 || ok {
		t.Errorf("of seven bytes: TSN %d, a window of %d, %t", tsn, window, ok)
	}
}

// TestParameters: what has no room for a parameter's head is padding, and one that claims less than its head is none.
func TestParameters(t *testing.T) {
	for text, want := range map[string]struct {
		n     int
		whole bool
	}{"": {0, true}, "8008 0004": {1, true}, "8008 0004 0000": {1, true}, "8008 0003": {0, false},
		"8008 0005": {0, false}, "8008 0005 01": {1, true}} {
		if got, whole := chunk.Parameters(unhex(t, text)); len(got) != want.n || whole != want.whole {
			t.Errorf("%s: %+v, whole %t", text, got, whole)
		}
	}
	for _, text := range []string{"c006 0006 0000 0000", "8008 0008 00000001"} {
		s, err := chunk.ParseSetup(append(make([]byte, chunk.SetupLen), unhex(t, text)...))
		if err != nil || s.HasAdaptation {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

// TestCut: a packet that was cut off has as much of its chunks as there is, and says how long they were.
func TestCut(t *testing.T) {
	p := chunk.Header{}.Packet(chunk.Chunk{Type: chunk.TypeSack},
		chunk.Chunk{Type: chunk.TypeAbort, Value: unhex(t, "000c 0009 656e6f756768 0000")})
	rest := chunk.Chunks{Bytes: p[chunk.HeaderLen : chunk.HeaderLen+4+10], Sent: len(p) - chunk.HeaderLen}
	if c, ok := rest.Next(); !ok || c.Type != chunk.TypeSack {
		t.Fatalf("%+v, %t", c, ok)
	}
	c, ok := rest.Next()
	if !ok || len(c.Value) != 6 || c.Length != 12 || c.Reason() != "en" {
		t.Errorf("%+v, %t, %q", c, ok, c.Reason())
	}
	if _, ok := rest.Next(); ok || len(rest.Bytes) > 0 {
		t.Error("something is left")
	}
}

// TestSetup has the bytes of an INIT ACK as RFC 9260, section 3.3.3, and RFC 5061, section 4.2.6, draw them; a
// parameter that nobody knows is passed over.
func TestSetup(t *testing.T) {
	s := chunk.Setup{Tag: 1, Window: 1500, Out: 2, In: 3, TSN: 4, Cookie: []byte("abcde"),
		Adaptation: 1, HasAdaptation: true}
	want := unhex(t, "00000001 000005dc 0002 0003 00000004  0007 0009 6162636465 000000  c006 0008 00000001")
	if got := s.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("% x, want\n% x", got, want)
	}
	more := append(unhex(t, "00000001 000005dc 0002 0003 00000004  8008 0006 c0 0f 0000"), want[chunk.SetupLen:]...)
	if got, err := chunk.ParseSetup(more); err != nil || !reflect.DeepEqual(got, s) ||
		!got.Indicates(1) || got.Indicates(0) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := chunk.ParseSetup(want[:15]); !errors.Is(err, chunk.ErrShort) || got.Tag != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := chunk.ParseSetup(want[:len(want)-1]); !errors.Is(err, chunk.ErrParameter) || got.Tag != 1 ||
		string(got.Cookie) != "abcde" || got.HasAdaptation {
		t.Errorf("%+v, %v", got, err)
	}
	none := chunk.Setup{Tag: 1}
	if none.Indicates(0) {
		t.Error("none is not 0")
	}
}

// TestReason: the text is that of the cause that has one.
func TestReason(t *testing.T) {
	for causes, want := range map[string]string{
		"": "", "000c 0004": "", "000c 0007 627965 00": "bye", "000d 0007 627965 00": "bye",
		"0001 0008 0005 0000": "", "0001 0008 0005 0000 000c 0007 627965 00": "bye", "000c 0003": "", "000c": "",
	} {
		c := chunk.Chunk{Type: chunk.TypeAbort, Value: unhex(t, causes)}
		if got := c.Reason(); got != want {
			t.Errorf("%s: %q, want %q", causes, got, want)
		}
	}
}

// FuzzPacket: the chunks of a packet are those of its bytes, in order; what is made of them again is the same but for
// its padding, and so is what an INIT says.
func FuzzPacket(f *testing.F) {
	f.Add(chunk.Header{Source: 1, Destination: 2, Tag: 3}.Packet(chunk.Chunk{Type: chunk.TypeAbort,
		Value: []byte{0, 12, 0, 5, 'x', 0, 0, 0}}))
	s := chunk.Setup{Tag: 1, Window: 1500, Out: 1, In: 2, TSN: 3, Adaptation: 1, HasAdaptation: true,
		Cookie: []byte("cookie")}
	d := chunk.Data{TSN: 1, Stream: 2, PPID: 16, Bytes: []byte("text")}
	f.Add(chunk.Header{}.Packet(chunk.Chunk{Type: chunk.TypeInitAck, Value: s.Append(nil)}, d.Chunk(7)))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := chunk.ParseHeader(b)
		all, whole := chunk.In(b)
		if !ok && len(all) > 0 {
			t.Fatal("chunks of no packet")
		}
		again := h.Packet(all...)
		same, _ := chunk.In(again)
		if !chunk.Sealed(again) || len(same) != len(all) || ok && whole && len(again)-len(b) > 3 {
			t.Fatalf("% x became % x", b, again)
		}
		for i, c := range all {
			if c.Length != len(c.Value) || c.Type != same[i].Type || c.Flags != same[i].Flags ||
				!bytes.Equal(c.Value, same[i].Value) {
				t.Fatalf("%+v became %+v", c, same[i])
			}
			c.Reason()
			roundTrip(t, &c)
		}
	})
}

// roundTrip reads a chunk as INIT and as DATA, and builds it again.
func roundTrip(t *testing.T, c *chunk.Chunk) {
	if s, err := chunk.ParseSetup(c.Value); err == nil {
		if again, err := chunk.ParseSetup(s.Append(nil)); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	}
	if d, ok := c.Data(); ok && !bytes.Equal(d.Chunk(c.Flags).Value, c.Value) {
		t.Fatalf("%+v of % x", d, c.Value)
	}
}

// TestBefore: TSNs go on from zero after the last, and of two the nearer way says which comes first.
func TestBefore(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want bool
	}{
		{1, 2, true}, {2, 1, false}, {2, 2, false}, {1<<32 - 1, 0, true}, {0, 1<<32 - 1, false},
		{5, 5 + 1<<31 - 1, true}, {5 + 1<<31 - 1, 5, false},
	} {
		if got := chunk.Before(c.a, c.b); got != c.want {
			t.Errorf("%d before %d: %v", c.a, c.b, got)
		}
	}
}
