package sctpudp

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// FuzzEndpoint gives any packets to an Endpoint with an association, from anybody: nobody who does not have its tag
// changes anything.
func FuzzEndpoint(f *testing.F) {
	f.Add(byte(chunk.TypeAbort), byte(1), []byte{0, 12, 0, 4})
	f.Add(byte(chunk.TypeInit), byte(0), (&chunk.Setup{Tag: 1, Window: 1500, Out: 1, In: 2, TSN: 3, Adaptation: 1,
		HasAdaptation: true}).Append(nil))
	f.Add(byte(chunk.TypeCookieEcho), byte(0), make([]byte, tokenLen+32))
	from := netip.MustParseAddrPort("127.0.0.1:9") // discards
	f.Fuzz(func(t *testing.T, kind, flags byte, value []byte) {
		if len(value) > 1400 {
			return
		}
		e := New(udpSocket(t), true, Config{})
		defer func() { _ = e.Close() }()
		ours, theirs := e.setup(), e.setup()
		p := e.newPath(from, from.Port(), ours, theirs)
		if !e.adopt(p, nil) {
			t.Fatal("no room")
		}
		for _, tag := range []uint32{0, ours.Tag ^ 1} {
			h := chunk.Header{Source: from.Port(), Destination: e.port, Tag: tag}
			e.dispatch(from, h.Packet(chunk.Chunk{Type: chunk.Type(kind), Flags: flags, Value: value}))
		}
		e.dispatch(from, value)
		if n, _, _ := e.count(); n != 1 || len(e.accepted) != 0 || len(p.in) != 0 || p.cause.Load() != nil {
			t.Fatalf("type %d, flags %x, % x had an effect", kind, flags, value)
		}
	})
}

// FuzzEnvelope: whatever a DATA chunk is, it comes out of its envelope as it went in.
func FuzzEnvelope(f *testing.F) {
	f.Add(byte(7), uint32(1), uint32(16), []byte("plain"))
	f.Add(byte(2), uint32(1), uint32(odd), []byte("x"))
	f.Add(byte(0x87), uint32(1), uint32(odd), []byte("x"))
	f.Fuzz(func(t *testing.T, flags byte, tsn, ppid uint32, data []byte) {
		d := chunk.Data{TSN: tsn, Stream: 3, PPID: ppid, Bytes: data}
		e := enveloped(d.Chunk(flags), &d)
		in, ok := e.Data()
		if !ok || in.TSN != tsn || in.Stream != 3 || e.Flags&plain != plain {
			t.Fatalf("%+v in %+v", d, e)
		}
		p := pieceOf(in.PPID, in.Bytes)
		if p.ppid != ppid || !bytes.Equal(p.data, data) || (p.flags^flags)&plain != 0 || p.flags&astray != 0 ||
			p.flags&plain != plain && p.tsn != tsn {
			t.Fatalf("%+v came as %+v", d, p)
		}
	})
}
