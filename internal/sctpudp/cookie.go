package sctpudp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/sctp/chunk"
)

// cookieLife is how long an INIT ACK may be answered: RFC 9260, section 16.
const cookieLife = 60 * time.Second

// A minter makes and checks State Cookies: what a server has to know of an INIT that it has answered, so that it keeps
// nothing by itself: RFC 9260, section 5.1.3.
type minter struct{ secret [32]byte }

func newMinter() (m minter) {
	_, _ = rand.Read(m.secret[:]) // which does not fail
	return m
}

// random returns a number that cannot be guessed, and is not 0.
func random() uint32 {
	var b [4]byte
	for {
		_, _ = rand.Read(b[:])
		if n := binary.BigEndian.Uint32(b[:]); n != 0 {
			return n
		}
	}
}

// cookieBody is the octets before the MAC.
const cookieBody = 8 + 2*chunk.SetupLen

// mint returns the cookie for the two sides' fields. It is good for the addresses and ports that it was made for.
func (m *minter) mint(now time.Time, ours, theirs *chunk.Setup, from netip.AddrPort, h chunk.Header) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	b = theirs.AppendFields(ours.AppendFields(b))
	return append(b, m.mac(b, from, h)...)
}

func (m *minter) mac(body []byte, from netip.AddrPort, p chunk.Header) []byte {
	h := hmac.New(sha256.New, m.secret[:])
	h.Write(body)
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(p.Source)<<16|uint32(p.Destination)))
	addr, _ := from.MarshalBinary()
	h.Write(addr)
	return h.Sum(nil)
}

// redeem returns what is in a cookie of ours that has not expired.
func (m *minter) redeem(now time.Time, cookie []byte, from netip.AddrPort, h chunk.Header) (ours, theirs chunk.Setup, ok bool) {
	if len(cookie) != cookieBody+sha256.Size || !hmac.Equal(cookie[cookieBody:], m.mac(cookie[:cookieBody], from, h)) {
		return ours, theirs, false
	}
	age := now.Unix() - int64(binary.BigEndian.Uint64(cookie))
	ours, _ = chunk.ParseSetup(cookie[8 : 8+chunk.SetupLen])
	theirs, _ = chunk.ParseSetup(cookie[8+chunk.SetupLen : cookieBody])
	return ours, theirs, age >= 0 && age <= int64(cookieLife/time.Second)
}
