package sctpudp

import (
	"bytes"
	"net/netip"
	"testing"
)

// FuzzPacket: the chunks of a packet are those of its octets, in order, and a packet that is made of them again is the
// same but for its padding.
func FuzzPacket(f *testing.F) {
	f.Add(control(1, 2, 3, chunkAbort, []byte{0, 12, 0, 4}))
	f.Add(seal(appendChunk(appendChunk(start(5000, 5000, 7), chunkCookieEcho, 0, []byte("abc")), chunkData, 7, data(1, 2, 16, "text"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerLen {
			b = seal(bytes.Clone(b))
		}
		p, chunks := parse(b)
		if p == nil {
			if chunks != nil {
				t.Fatal("chunks of no packet")
			}
			return
		}
		again := append([]byte(nil), b[:headerLen]...)
		for _, c := range chunks {
			again = appendChunk(again, c.kind(), c.flags(), c.value())
		}
		if q, same := parse(seal(again)); q == nil || len(same) != len(chunks) {
			t.Fatalf("% x became % x", b, again)
		}
	})
}

// FuzzInit: what an INIT says is said again in the same words.
func FuzzInit(f *testing.F) {
	f.Add((&initFields{tag: 1, window: 1500, out: 1, in: 2, tsn: 3, adaptation: 1, hasAdaptation: true, cookie: []byte("cookie")}).value())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, ok := parseInit(b)
		if !ok {
			return
		}
		if w, ok := parseInit(v.value()); !ok || w.tag != v.tag || w.tsn != v.tsn || w.ddp() != v.ddp() || !bytes.Equal(w.cookie, v.cookie) {
			t.Fatalf("%+v became %+v", v, w)
		}
	})
}

// FuzzEndpoint gives any packets to an Endpoint with an association, from anybody: nobody who does not have its tag
// changes anything.
func FuzzEndpoint(f *testing.F) {
	f.Add(byte(chunkAbort), byte(1), []byte{0, 12, 0, 4})
	f.Add(byte(chunkInit), byte(0), (&initFields{tag: 1, window: 1500, out: 1, in: 2, tsn: 3, adaptation: 1, hasAdaptation: true}).value())
	f.Add(byte(chunkCookieEcho), byte(0), make([]byte, cookieBody+32))
	from := netip.MustParseAddrPort("127.0.0.1:9") // discards
	f.Fuzz(func(t *testing.T, kind, flags byte, value []byte) {
		if len(value) > 1400 {
			return
		}
		e := New(udpSocket(t), true, Config{})
		defer func() { _ = e.Close() }()
		ours, theirs := e.fields(), e.fields()
		p := e.newPath(key{from.Addr(), from.Port()}, from, ours, theirs)
		if !e.adopt(p, nil) {
			t.Fatal("no room")
		}
		for _, tag := range []uint32{0, ours.tag ^ 1} {
			e.dispatch(from, seal(appendChunk(start(from.Port(), e.port, tag), kind, flags, value)))
		}
		e.dispatch(from, value)
		if n, _, _ := e.count(); n != 1 || len(e.accepted) != 0 || len(p.in) != 0 || p.farewell.Load() != nil {
			t.Fatalf("type %d, flags %x, % x had an effect", kind, flags, value)
		}
	})
}
