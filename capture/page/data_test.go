package page_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// onPage is the data of a connection, as js/data.js reads it.
type onPage struct {
	Number   string
	Ends     [2]string
	Start    [2]uint64
	End      [2]uint64
	FPDUs    table
	Segments table
	Markers  table
	Spans    []struct {
		Dir         int
		Offset, End uint64
		Kind, Text  string
		Packet      uint64
	}
}

// A table is columns: numbers as written, by name.
type table struct {
	count   int
	columns map[string][]int64
	texts   map[string]string
	inner   map[string]table
}

func (t *table) UnmarshalJSON(b []byte) error {
	var members map[string]any
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	return t.parse(members)
}

func (t *table) parse(members map[string]any) error {
	*t = table{columns: map[string][]int64{}, texts: map[string]string{}, inner: map[string]table{}}
	for name, v := range members {
		switch v := v.(type) {
		case float64:
			if name == "count" {
				t.count = int(v)
			}
		case string:
			data, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				return err
			}
			for len(data) > 0 {
				n, used := binary.Varint(data)
				t.columns[name], data = append(t.columns[name], n), data[used:]
				if n == 0 {
					more, used := binary.Varint(data)
					t.columns[name], data = append(t.columns[name], make([]int64, more)...), data[used:]
				}
			}
		case map[string]any:
			if name == "texts" {
				for row, text := range v {
					t.texts[row] = text.(string)
				}
				continue
			}
			var inner table
			if err := inner.parse(v); err != nil {
				return err
			}
			t.inner[name] = inner
		}
	}
	return nil
}

// sum adds the differences of a column up, in their lanes.
func (t *table) sum(name string, lane func(i int) int) (all []int64) {
	var last [4]int64
	for i, d := range t.columns[name] {
		last[lane(i)] += d
		all = append(all, last[lane(i)])
	}
	return all
}

// sum32 is sum in 32 bits.
func (t *table) sum32(name string, lane func(i int) int) (all []uint32) {
	for _, v := range t.sum(name, lane) {
		all = append(all, uint32(v))
	}
	return all
}

func one(int) int { return 0 }

// dataOf returns the data of a connection on the page.
func dataOf(t testing.TB, doc *html.Node, number int) (d onPage) {
	t.Helper()
	testrig.Must(t, json.Unmarshal([]byte(text(byID(t, doc, fmt.Sprintf("c%d-data", number)))), &d))
	return d
}

// rows writes the FPDUs of the data in lines.
func (d *onPage) rows() string {
	var b strings.Builder
	f := &d.FPDUs
	flags := f.sum("flags", one)
	dir := func(i int) int { return int(flags[i] & 1) }
	lane := func(i int) int { return dir(i) + int(flags[i]>>8&1)*2 }
	size, packet, time, length, header := f.sum("size", dir), f.sum("packet", dir), f.sum("time", one),
		f.sum("length", dir), f.sum("header", lane)
	x, y, z, ulp := f.sum32("a", lane), f.sum32("b", lane), f.sum32("c", lane), f.sum32("ulp", lane)
	var ends [2]int64
	for i := range f.count {
		at := ends[dir(i)] + f.columns["gap"][i]
		ends[dir(i)] = at + size[i]
		fmt.Fprintf(&b, "%d dir %d flags %#x at %d size %d packet %d+%d time %d length %d header %d cut %d %#x %#x %#x %#x%s\n", i, dir(i), flags[i]>>1,
			at, size[i], packet[i], f.columns["later"][i], time[i], length[i], header[i], f.columns["cut"][i],
			x[i], y[i], z[i], ulp[i],
			f.texts[fmt.Sprint(i)])
	}
	return b.String()
}

// asTold writes FPDUs as the rows of the data should be.
func asTold(all []decode.FPDU) string {
	var b strings.Builder
	for i := range all {
		f := &all[i]
		g, note := &f.Segment, ""
		x, y, z := g.QN, g.MSN, g.MO
		if g.Tagged {
			x, y, z = g.STag, uint32(g.TO>>32), uint32(g.TO)
		}
		if f.Err != nil {
			note = f.Err.Error()
		}
		fmt.Fprintf(&b, "%d dir %d flags %#x at %d size %d packet %d+%d time %d length %d header %d cut %d %#x %#x %#x %#x%s\n", i, f.Dir, bits(f),
			f.Offset, f.Size(), f.First.Number, f.Last.Number-f.First.Number, f.Last.Time.Sub(epoch), f.Length,
			len(f.ULPDU)-len(g.Payload),
			f.Cut, x, y, z, g.ULP, note)
	}
	return b.String()
}

// bits is what js/data.js expects in the flags of an FPDU, after the direction.
func bits(f *decode.FPDU) (v int) {
	v = int(f.Op) | int(f.CRC)<<4
	for at, set := range map[int]bool{
		0x40: f.HasSegment, 0x80: f.Segment.Tagged, 0x100: f.Segment.Last, 0x200: f.Begins,
		0x400: f.Ends, 0x800: f.Err != nil,
		0x1000: f.RTR != 0, 0x2000: f.ReadRequest != nil,
	} {
		if set {
			v |= at
		}
	}
	return v
}

// TestColumns tells of FPDUs of any kind, and reads them back from the page.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := page.New(page.Config{Name: "x"})
		s := newScript(p, 3)
		var told []decode.FPDU
		for range rapid.IntRange(0, 20).Draw(r, "FPDUs") {
			f := s.fpdu(capture.Dir(rapid.IntRange(0, 1).Draw(r, "dir")),
				rdmap.Opcode(rapid.IntRange(0, 15).Draw(r, "op")), rapid.IntRange(0, 3000).Draw(r, "payload"))
			f.CRC = decode.CRCState(rapid.IntRange(0, 3).Draw(r, "crc"))
			f.HasSegment = rapid.Bool().Draw(r, "segment") || f.Segment.Tagged
			f.Segment.Last, f.Begins, f.Ends = rapid.Bool().Draw(r, "last"), rapid.Bool().Draw(r, "begins"),
				rapid.Bool().Draw(r, "ends")
			f.Segment.STag, f.Segment.TO = rapid.Uint32().Draw(r, "stag"), rapid.Uint64().Draw(r, "to")
			f.Segment.QN, f.Segment.MSN, f.Segment.MO = rapid.Uint32().Draw(r, "qn"), rapid.Uint32().Draw(r, "msn"),
				rapid.Uint32().Draw(r, "mo")
			f.Segment.ULP = rapid.Uint32().Draw(r, "ulp")
			f.Cut = rapid.IntRange(0, 5).Draw(r, "cut")
			f.First.Number -= uint64(rapid.IntRange(0, int(f.First.Number)).Draw(r, "packets"))
			if rapid.Bool().Draw(r, "error") {
				f.Err = failure("it is wrong")
			}
			told = append(told, *f)
			p.FPDU(s.conn, f)
		}
		s.finish()
		d := dataOf(t, document(t, written(t, p)), 3)
		if got, want := d.rows(), asTold(told); got != want {
			r.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// TestData is the data of a small page, all of it.
func TestData(t *testing.T) {
	d := dataOf(t, document(t, written(t, small())), 5)
	want := `0 dir 0 flags 0x7e0 at 20 size 1020 packet 5+0 time 35000 length 1014 header 14 cut 0 0xabcd0001 0x7fff 0x14 0x0
1 dir 1 flags 0x2761 at 20 size 24 packet 6+0 time 42000 length 18 header 18 cut 0 0x0 0x1 0x0 0x0
`
	if got := d.rows(); got != want {
		t.Errorf("FPDUs:\n%swant\n%s", got, want)
	}
	type columns = map[string][]int64
	for name, l := range map[string]struct {
		got  table
		want columns
	}{
		"requests": {d.FPDUs.inner["requests"], columns{
			"size": {4096}, "sinkSTag": {7}, "sinkHigh": {256}, "sinkLow": {0}, "srcSTag": {9},
			"srcHigh": {-1 << 31}, "srcLow": {5},
		}},
		"segments": {d.Segments, columns{
			"flags": {2, 1, -1, 1}, "gap": {0, 0, 0, 0}, "length": {20, 20, 1000, 4}, "packet": {3, 4, 2, 2},
			"time": {21000, 7000, 7000, 7000}, "repeated": {0, 0, 0, 0},
		}},
		"markers": {d.Markers, columns{"flags": {0, 0}, "offset": {512, 512}, "fpduptr": {492, 512}}},
	} {
		if got, want := fmt.Sprint(l.got.columns), fmt.Sprint(l.want); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got, want := fmt.Sprint(d.Number, " ", d.Ends, d.Start, d.End),
		"5 [10.0.0.1:40000 [2001:db8::2]:4791] [0 0] [1040 44]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := fmt.Sprint(d.Spans), "[{0 0 20 startup mpa: start-req C pdlen 0 mpav2 3} {1 0 20 startup mpa: start-rep C pdlen 0 mpav2 4}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
