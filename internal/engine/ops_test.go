package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

var errReset = errors.New("connection reset by peer")

// messageSizes are the lengths at which a cut may go wrong: around one segment of
// an untagged (MULPDU less 18) and a tagged message (less 14), and around a power of two.
func messageSizes(mulpdu int) []int {
	return []int{
		0, 1, 2, 3, 4, 5,
		1023, 1024, 1025,
		mulpdu - 19, mulpdu - 18, mulpdu - 17,
		mulpdu - 15, mulpdu - 14, mulpdu - 13,
		2*(mulpdu-18) - 1, 2 * (mulpdu - 18), 2*(mulpdu-18) + 1,
		2 * (mulpdu - 14), 10*mulpdu + 7,
	}
}

// A variant is one way in which two ends may have agreed to talk.
type variant struct {
	fromA, fromB, crc bool // markers by direction, CRCs
	version           uint8
	mulpdu            int
	oneByOne          bool // bytes arrive one at a time
}

func (v variant) String() string {
	return fmt.Sprintf("markers %t %t, CRC %t, version %d, MULPDU %d, one by one %t",
		v.fromA, v.fromB, v.crc, v.version, v.mulpdu, v.oneByOne)
}

var variants = []variant{
	{crc: true, version: 1, mulpdu: testMULPDU},
	{crc: false, version: 1, mulpdu: testMULPDU},
	{fromA: true, crc: true, version: 1, mulpdu: testMULPDU},
	{fromB: true, crc: true, version: 1, mulpdu: testMULPDU},
	{fromA: true, fromB: true, crc: false, version: 1, mulpdu: testMULPDU},
	{fromA: true, fromB: true, crc: true, version: 0, mulpdu: testMULPDU},
	{crc: true, version: 1, mulpdu: layout.MinMULPDU},
	{fromA: true, fromB: true, crc: true, version: 1, mulpdu: layout.MinMULPDU},
	{crc: true, version: 1, mulpdu: layout.MaxMULPDU},
	{fromA: true, fromB: true, crc: true, version: 1, mulpdu: layout.MaxMULPDU},
	{crc: true, version: 1, mulpdu: testMULPDU, oneByOne: true},
	{fromA: true, fromB: true, crc: true, version: 1, mulpdu: testMULPDU, oneByOne: true},
}

func (v variant) pair(t *testing.T) *pair {
	p := newPair(t, markers(v.fromA, v.fromB), both(func(s *setup) {
		s.CRC, s.DDPVersion, s.RDMAPVersion, s.MULPDU = v.crc, v.version, v.version, v.mulpdu
		s.PeerToPeer = true
		s.Negotiated.RTR = mpa.RTRWrite
	}))
	if v.oneByOne {
		one := func(int) int { return 1 }
		p.ab.piece, p.ba.piece, p.a.chunk = one, one, func(int) int { return 7 }
	}
	return p
}

// everyVariant runs a test of one message of every size, in every variant.
func everyVariant(t *testing.T, f func(t *testing.T, p *pair, from, to *host, n int)) {
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			p := v.pair(t)
			p.run()
			for _, n := range messageSizes(v.mulpdu) {
				if v.oneByOne && n > testMULPDU {
					continue
				}
				f(t, p, p.a, p.b, n)
				f(t, p, p.b, p.a, n)
			}
			p.closeBoth()
			p.a.noCompletion()
			p.b.noCompletion()
		})
	}
}

// Proves P03, P29, P31, D04, D05, D24, D27: each Send takes one receive and is
// delivered whole, once and with its length, whatever the cut.
func TestSend(t *testing.T) {
	everyVariant(t, func(t *testing.T, p *pair, from, to *host, n int) {
		source, sink := numbered(n), make([]byte, n+3)
		rs, rd := from.region(source, 0), to.region(sink, memory.LocalWrite)
		to.receive(1, all(rd, n+3))
		from.post(work(2, OpSend, all(rs, n)))
		p.run()
		from.completion(success(2, OpSend, n))
		to.completion(success(1, OpReceive, n))
		if !bytes.Equal(sink[:n], source) || !bytes.Equal(sink[n:], make([]byte, 3)) {
			t.Fatalf("%d bytes: changed on the way", n)
		}
	})
}

// Proves P03, P18, P19, D24: a Write places its bytes at any offset of one
// buffer, is told to nobody there and takes no receive.
func TestWrite(t *testing.T) {
	everyVariant(t, func(t *testing.T, p *pair, from, to *host, n int) {
		source, sink := numbered(n), make([]byte, n+9)
		rs, rd := from.region(source, 0), to.region(sink, remoteAll)
		w := work(3, OpWrite, all(rs, n))
		w.RemoteSTag, w.RemoteTO = rd.STag(), 5
		from.post(w)
		p.run()
		from.completion(success(3, OpWrite, n))
		to.noCompletion()
		if !bytes.Equal(sink[5:5+n], source) || !bytes.Equal(sink[:5], make([]byte, 5)) ||
			!bytes.Equal(sink[5+n:], make([]byte, 4)) {
			t.Fatalf("%d bytes: changed on the way", n)
		}
	})
}

// Proves P03, P11, P18, P21, P22, P26: a Read fetches any bytes of one buffer
// into any place of another, without the source's consumer, in one request and
// one response.
func TestRead(t *testing.T) {
	everyVariant(t, func(t *testing.T, p *pair, from, to *host, n int) {
		source, sink := numbered(n+9), make([]byte, n+9)
		rs, rd := to.region(source, remoteAll), from.region(sink, remoteAll)
		before := to.Machine.Stats().Received[rdmap.OpReadRequest].Messages
		w := work(4, OpRead, SGE{Region: rd, Offset: 3, Length: n})
		w.RemoteSTag, w.RemoteTO = rs.STag(), 2
		from.post(w)
		p.run()
		from.completion(success(4, OpRead, n))
		to.noCompletion()
		if !bytes.Equal(sink[3:3+n], source[2:2+n]) || !bytes.Equal(sink[:3], make([]byte, 3)) ||
			!bytes.Equal(sink[3+n:], make([]byte, 6)) {
			t.Fatalf("%d bytes: changed on the way", n)
		}
		if got := to.Machine.Stats().Received[rdmap.OpReadRequest].Messages - before; got != 1 {
			t.Fatalf("%d Read Requests", got)
		}
	})
}
