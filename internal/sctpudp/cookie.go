package sctpudp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
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

// Ties are the Local-Tie-Tag and Peer's-Tie-Tag of an association: RFC 9260, section 5.2.2. They are random, since a
// cookie can be read; without an association they are 0.
type ties [2]uint32

// A token is what a cookie says.
type token struct {
	minted       time.Duration // from when the Endpoint began
	ours, theirs chunk.Setup
	ties         ties // of the association that there was with the peer
}

// tokenLen is the bytes before the MAC.
const tokenLen = 8 + 2*chunk.SetupLen + 8

// mint returns a cookie. It is good for the addresses and ports that it was made for.
func (m *minter) mint(t *token, from netip.AddrPort, h chunk.Header) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(t.minted))
	b = t.theirs.AppendFields(t.ours.AppendFields(b))
	b = binary.BigEndian.AppendUint32(b, t.ties[0])
	b = binary.BigEndian.AppendUint32(b, t.ties[1])
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

// redeem returns what is in a cookie. It reports false for one that is not ours.
func (m *minter) redeem(cookie []byte, from netip.AddrPort, h chunk.Header) (t token, ok bool) {
	if len(cookie) != tokenLen+sha256.Size || !hmac.Equal(cookie[tokenLen:], m.mac(cookie[:tokenLen], from, h)) {
		return t, false
	}
	t.minted = time.Duration(binary.BigEndian.Uint64(cookie))
	rest := cookie[8:tokenLen]
	t.ours, _ = chunk.ParseSetup(rest[:chunk.SetupLen])
	t.theirs, _ = chunk.ParseSetup(rest[chunk.SetupLen : 2*chunk.SetupLen])
	t.ties = ties{binary.BigEndian.Uint32(rest[2*chunk.SetupLen:]), binary.BigEndian.Uint32(rest[2*chunk.SetupLen+4:])}
	return t, true
}

// staleness is for how long the token has not been good any more: positive if it is too old.
func (t *token) staleness(now time.Duration) time.Duration { return now - t.minted - cookieLife }
