package decode_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// writes returns so many bytes of Writes with CRCs, each in one FPDU.
func writes(n int) (b []byte) {
	w := mpa.NewWriter(false, true)
	payload := bytes.Repeat([]byte("iWARP data "), 100)
	for len(b) < n {
		h := rdmap.OpWrite.Header(1)
		h.Last, h.STag, h.TO = true, 7, uint64(len(b))
		b = w.Append(b, h.Append(nil), payload)
	}
	return b[:n]
}

// single is a tape of a startup and then Writes in segments of one byte each, in an order.
func single(order []int) []byte {
	p := opened()
	p.data(fw, []byte(request1))
	p.data(bw, []byte(reply1))
	at, content := p.seq[fw], writes(len(order))
	for _, i := range order {
		p.at(fw, capture.ACK|capture.PSH, at+uint32(i), p.seq[bw], content[i:i+1])
	}
	return p.file.Bytes()
}

// orders are those of n segments.
func orders(n int) map[string][]int {
	backwards, swapped, twice := make([]int, n), make([]int, n), make([]int, n)
	for i := range n {
		backwards[i], swapped[i], twice[i] = n-1-i, i^1, i/2
	}
	return map[string][]int{"backwards": backwards, "shuffled": rand.New(rand.NewPCG(1, 2)).Perm(n),
		"swapped": swapped, "twice": twice}
}

// many is a tape of connections of seven packets.
func many(n int) []byte {
	p := newTape(capture.LinkRaw)
	for i := range n {
		p.ends[fw] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 16), byte(i >> 8)}),
			uint16(40000+i%256))
		p.open()
		p.data(fw, []byte(request1))
		p.data(bw, []byte(reply1))
		p.packet(fw, finAck, nil)
		p.packet(bw, finAck, nil)
	}
	return p.file.Bytes()
}

// TestManyAtOnce has more connections at once than may be known: this is said.
func TestManyAtOnce(t *testing.T) {
	for _, c := range []struct {
		file    []byte
		evicted uint64
	}{{many(100), 0}, {beside(100, false), 84}, {beside(100, true), 84}} {
		var out bytes.Buffer
		text := decode.NewText(&out, decode.TextConfig{})
		totals, err := decode.Run(bytes.NewReader(c.file),
			decode.Config{Capture: capture.Config{MaxConnections: 16}}, text)
		testrig.Must(t, err)
		text.Totals(totals)
		testrig.Must(t, text.Flush())
		said := strings.Contains(out.String(), "too many at once: "+strconv.Itoa(int(c.evicted))+
			" TCP connections forgotten in the middle")
		if totals.Connections != 100 || totals.IWARP != 100 || totals.Evicted != c.evicted || said != (c.evicted > 0) {
			t.Errorf("%v, %d forgotten, said: %v", &totals, totals.Evicted, said)
		}
	}
}

// TestInTurn has connections that take turns, more than may be known: each is counted once, those that are known are
// judged, and the others come to no note.
func TestInTurn(t *testing.T) {
	p := newTape(capture.LinkRaw)
	for _, step := range []func(){
		p.open,
		func() { p.data(fw, []byte(request1)) },
		func() { p.data(bw, []byte(reply1)) },
		func() { p.packet(fw, finAck, nil) },
		func() { p.packet(bw, finAck, nil) },
	} {
		begin := p.seq
		for i := range 20 {
			p.seq, p.ends[fw] = begin, netip.AddrPortFrom(client.Addr(), uint16(40000+i))
			step()
		}
	}
	totals, err := decode.Run(bytes.NewReader(p.file.Bytes()), decode.Config{Capture: capture.Config{MaxConnections: 16}},
		decode.Ignore{})
	testrig.Must(t, err)
	unread := totals.Unread[decode.Unread{Why: capture.SkipForgotten}]
	if totals.Connections != 20 || totals.IWARP != 16 || totals.Evicted != 4 || unread != 4*4 || totals.Findings != [3]uint64{} {
		t.Errorf("%v, %d forgotten, %d packets unread", &totals, totals.Evicted, unread)
	}
}

// beside is a tape of connections that are all open when it ends, or half of each.
func beside(n int, half bool) []byte {
	p := newTape(capture.LinkRaw)
	for i := range n {
		p.ends[fw] = netip.AddrPortFrom(client.Addr(), uint16(40000+i))
		p.open()
		p.data(fw, []byte(request1))
		if half {
			p.packet(bw, finAck, nil)
		}
	}
	return p.file.Bytes()
}

func benchmarkDecode(b *testing.B, file []byte, items int) {
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		text := decode.NewText(io.Discard, decode.TextConfig{})
		totals, err := decode.Run(bytes.NewReader(file), decode.Config{}, text)
		testrig.Must(b, err)
		if totals.IWARP == 0 {
			b.Fatal(&totals)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(items), "ns/item")
}

// BenchmarkSegments decodes segments of one byte that come out of order: the time for each does not grow with their
// number.
func BenchmarkSegments(b *testing.B) {
	for _, n := range []int{50000, 200000} {
		for name, order := range orders(n) {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) { benchmarkDecode(b, single(order), n) })
		}
	}
}

// BenchmarkConnections decodes connections of a few packets: the time for each does not grow with their number.
func BenchmarkConnections(b *testing.B) {
	for _, n := range []int{37500, 150000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmarkDecode(b, many(n), n) })
	}
}
