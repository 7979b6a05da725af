package conform

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// The buffers that we advertise to a server. Their STags and TOs mean nothing to us.
const (
	sourceSTag, sourceTO = 0x00c0ff01, 0x1000
	sinkSTag, sinkTO     = 0x00c0ff02, 0x2000
)

// pingText is what we ping with, in 32 bytes: a server of rdma-core's takes no more
// than its own buffer has, and writes back up to the first byte of zero.
func pingText() []byte { return []byte("rdma-ping-0: ABCDEFGHIJKLMNOPQR\x00") }

// sourceAdvert is where the ping's text is for the server to read.
func sourceAdvert() message.Advert {
	return message.Advert{TO: sourceTO, STag: sourceSTag, Length: uint32(len(pingText()))}
}

// sinkAdvert is where the server is to write it.
func sinkAdvert() message.Advert {
	return message.Advert{TO: sinkTO, STag: sinkSTag, Length: uint32(len(pingText()))}
}

// sendAdvert sends an advert, or as server a "go ahead".
func (s *session) sendAdvert(text string, a message.Advert) {
	s.sendMessage(text, rdmap.OpSend, a.Append(nil))
}

// peerAdvert waits for an advert, or from a server for a "go ahead".
func (s *session) peerAdvert(expected string) message.Advert {
	return s.advert(s.message(rdmap.OpSend, expected).Payload, expected)
}

func (s *session) advert(b []byte, expected string) message.Advert {
	a, err := message.ParseAdvert(b)
	s.want(err == nil, expected+", of 16 bytes", wording.Bytes(len(b)))
	return a
}

// peerReads waits for the server's Read Request of the source.
func (s *session) peerReads() rdmap.ReadRequest {
	expected := fmt.Sprintf("a Read Request of STag 0x%x, TO 0x%x, %d bytes", sourceSTag, sourceTO, len(pingText()))
	m := s.message(rdmap.OpReadRequest, expected)
	r, err := rdmap.ParseReadRequest(m.Payload)
	if err != nil {
		s.failf(expected, "%v", err)
	}
	s.want(r.SrcSTag == sourceSTag && r.SrcTO == sourceTO && int(r.Size) == len(pingText()), expected, r)
	return r
}

// sendResponse answers a Read Request with the whole of the data.
func (s *session) sendResponse(r rdmap.ReadRequest, data []byte) {
	s.sendTagged("Read Response", rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, data)
}

// peerWrites waits for the server's Write of the text into the sink.
func (s *session) peerWrites() {
	expected := fmt.Sprintf("an RDMA Write of the text at STag 0x%x, TO 0x%x", sinkSTag, sinkTO)
	m := s.message(rdmap.OpWrite, expected)
	s.want(m.STag == sinkSTag && m.TO == sinkTO, expected, m.Header)
	s.want(bytes.Equal(m.Payload, pingText()), expected, strconv.Quote(string(m.Payload)))
}

// ping is one ping of rping over an established connection, as client where the peer
// is the Responder, and as server where it is the Initiator.
func (s *session) ping() {
	if s.role() == mpa.RoleResponder {
		s.pingServer()
	} else {
		s.pingClient()
	}
}

// pingServer pings rping -s.
func (s *session) pingServer() {
	s.sendAdvert("source advert", sourceAdvert())
	s.restOfServerPing()
}

// restOfServerPing goes on after our source advert.
func (s *session) restOfServerPing() {
	s.sendResponse(s.peerReads(), pingText())
	s.restAfterRead()
}

// restAfterRead goes on where the server has its text.
func (s *session) restAfterRead() {
	s.peerAdvert("the server's first go ahead")
	s.sendAdvert("sink advert", sinkAdvert())
	s.peerWrites()
	s.peerAdvert("the server's second go ahead")
}

// pingClient serves a ping of rping -c.
func (s *session) pingClient() {
	text := s.readSource(s.peerAdvert("the client's source advert"))
	s.sendAdvert("go ahead", message.Advert{})
	sink := s.peerAdvert("the client's sink advert")
	s.sendTagged("the text back", rdmap.OpWrite, sink.STag, sink.TO, text)
	s.sendAdvert("go ahead", message.Advert{})
}

// readSource reads the buffer of a client's advert.
func (s *session) readSource(a message.Advert) []byte {
	r := rdmap.ReadRequest{SinkSTag: sinkSTag, SinkTO: sinkTO, Size: a.Length, SrcSTag: a.STag, SrcTO: a.TO}
	s.sendMessage("Read Request of the source", rdmap.OpReadRequest, r.Append(nil))
	expected := fmt.Sprintf("a Read Response of %d bytes at STag 0x%x, TO 0x%x", a.Length, sinkSTag, sinkTO)
	m := s.message(rdmap.OpReadResponse, expected)
	s.want(m.STag == sinkSTag && m.TO == sinkTO && len(m.Payload) == int(a.Length), expected, m.Header)
	return m.Payload
}

// works proves that an established connection works: by a ping if the peer's
// application is rping, and by that it stays open otherwise.
func (s *session) works() {
	if s.app() == AppRping {
		s.ping()
		return
	}
	s.expectNothing("the connection is established")
}
