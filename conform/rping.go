package conform

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// advertLen is the length of every Send of rping, in octets.
const advertLen = 16

// An Advert is a Send of rping: it tells the peer of a buffer.
//
//	 0                   1                   2                   3
//	+-------------------------------+---------------+---------------+
//	|        tagged offset          |      STag     |    length     |
//	+-------------------------------+---------------+---------------+
type Advert struct {
	TO     uint64
	STag   uint32
	Length uint32 // octets
}

// Octets returns the advert as it is sent.
func (a Advert) Octets() []byte {
	b := binary.BigEndian.AppendUint64(nil, a.TO)
	b = binary.BigEndian.AppendUint32(b, a.STag)
	return binary.BigEndian.AppendUint32(b, a.Length)
}

// The buffers that we tell a server of. Neither STag is of any use to us.
const (
	sourceSTag, sourceTO = 0x00c0ff01, 0x1000
	sinkSTag, sinkTO     = 0x00c0ff02, 0x2000
)

// PingText is what we ping with, in 32 octets: a server of rdma-core's takes no more
// than its own buffer has, and writes back up to the first octet of zero.
func PingText() []byte { return []byte("rdma-ping-0: ABCDEFGHIJKLMNOPQR\x00") }

// SourceAdvert is where the ping's text is for the server to read.
func SourceAdvert() Advert { return Advert{sourceTO, sourceSTag, uint32(len(PingText()))} }

// SinkAdvert is where the server is to write it.
func SinkAdvert() Advert { return Advert{sinkTO, sinkSTag, uint32(len(PingText()))} }

// SendAdvert sends an advert, or as server a "go ahead".
func (s *Session) SendAdvert(text string, a Advert) { s.SendMessage(text, rdmap.OpSend, a.Octets()) }

// PeerAdvert waits for an advert, or from a server for a "go ahead".
func (s *Session) PeerAdvert(expected string) Advert {
	m := s.Message(rdmap.OpSend, expected)
	if len(m.Payload) != advertLen {
		s.Failf(expected+", of 16 octets", "%s", count(len(m.Payload)))
	}
	return parseAdvert(m.Payload)
}

func parseAdvert(b []byte) Advert {
	be := binary.BigEndian
	return Advert{be.Uint64(b), be.Uint32(b[8:]), be.Uint32(b[12:])}
}

// PeerReads waits for the server's Read Request of the source.
func (s *Session) PeerReads() rdmap.ReadRequest {
	expected := fmt.Sprintf("a Read Request of STag 0x%x, TO 0x%x, %d octets", sourceSTag, sourceTO, len(PingText()))
	m := s.Message(rdmap.OpReadRequest, expected)
	r, err := rdmap.ParseReadRequest(m.Payload)
	if err != nil {
		s.Failf(expected, "%v", err)
	}
	s.Want(r.SrcSTag == sourceSTag && r.SrcTO == sourceTO && int(r.Size) == len(PingText()), expected, r)
	return r
}

// SendResponse answers a Read Request with the whole of the data.
func (s *Session) SendResponse(r rdmap.ReadRequest, data []byte) {
	s.SendTagged("Read Response", rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, data)
}

// PeerWrites waits for the server's Write of the text into the sink.
func (s *Session) PeerWrites() {
	expected := fmt.Sprintf("an RDMA Write of the text at STag 0x%x, TO 0x%x", sinkSTag, sinkTO)
	m := s.Message(rdmap.OpWrite, expected)
	s.Want(m.Header.STag == sinkSTag && m.Header.TO == sinkTO, expected, m.Header)
	s.Want(bytes.Equal(m.Payload, PingText()), expected, quote(string(m.Payload)))
}

// Ping is one ping of rping over an established connection, as client where the peer
// is the Responder, and as server where it is the Initiator.
func (s *Session) Ping() {
	if s.Role() == mpa.RoleResponder {
		s.pingServer()
	} else {
		s.pingClient()
	}
}

// pingServer pings rping -s.
func (s *Session) pingServer() {
	s.SendAdvert("source advert", SourceAdvert())
	s.SendResponse(s.PeerReads(), PingText())
	s.PeerAdvert("the server's first go ahead")
	s.SendAdvert("sink advert", SinkAdvert())
	s.PeerWrites()
	s.PeerAdvert("the server's second go ahead")
}

// pingClient serves a ping of rping -c.
func (s *Session) pingClient() {
	text := s.ReadSource(s.PeerAdvert("the client's source advert"))
	s.SendAdvert("go ahead", Advert{})
	sink := s.PeerAdvert("the client's sink advert")
	s.SendTagged("the text back", rdmap.OpWrite, sink.STag, sink.TO, text)
	s.SendAdvert("go ahead", Advert{})
}

// ReadSource reads what a client's advert tells of.
func (s *Session) ReadSource(a Advert) []byte {
	r := rdmap.ReadRequest{SinkSTag: sinkSTag, SinkTO: sinkTO, Size: a.Length, SrcSTag: a.STag, SrcTO: a.TO}
	s.SendMessage("Read Request of the source", rdmap.OpReadRequest, r.Append(nil))
	expected := fmt.Sprintf("a Read Response of %d octets at STag 0x%x, TO 0x%x", a.Length, sinkSTag, sinkTO)
	m := s.Message(rdmap.OpReadResponse, expected)
	s.Want(m.Header.STag == sinkSTag && m.Header.TO == sinkTO && len(m.Payload) == int(a.Length), expected, m.Header)
	return m.Payload
}

// Works proves that an established connection works: by a ping if the peer's
// application is rping, and by that it stays open otherwise.
func (s *Session) Works() {
	if s.App() == AppRping {
		s.Ping()
		return
	}
	s.ExpectNothing("the connection is established")
}
