package conform

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// Dialogues with rping's server over SCTP.

// withRping has a case need rping for the peer's application.
func withRping(c Case) Case {
	c.App = AppRping
	return c
}

// advertise tells rping's server of a buffer.
func (d *ddpSession) advertise(what string, a message.Advert) {
	d.say(what+" advert", d.Message(rdmap.OpSend, a.Append(nil)))
}

// segment waits for a DDP Segment of an opcode. It is in one DATA chunk.
//
// RFC 5043, section 9: "SCTP data chunk fragmentation MUST NOT be used unless the alternative is IP fragmentation."
func (d *ddpSession) segment(op rdmap.Opcode, expected string) ddp.Segment {
	m, ok := d.hear(d.opts.Timeout)
	if !ok {
		d.failf(expected, "%s", d.silence())
	}
	d.want(isOpcode(&m, op), expected, describeMessage(&m))
	d.want(m.Chunks == 1, expected+", in one DATA chunk", wording.Count(m.Chunks, "chunk"))
	seg, _ := m.Segment()
	return seg
}

// readRequest waits for the server's Read Request of the source.
func (d *ddpSession) readRequest(n int) rdmap.ReadRequest {
	expected := fmt.Sprintf("an RDMA Read Request of %d bytes", n)
	seg := d.segment(rdmap.OpReadRequest, expected)
	r, err := rdmap.ParseReadRequest(seg.Payload)
	d.want(err == nil && int(r.Size) == n, expected, fmt.Sprintf("%s (%v)", wording.Bytes(r.Size), err))
	return r
}

// respond answers a Read Request, in segments that fit any path.
func (d *ddpSession) respond(r rdmap.ReadRequest, data []byte) {
	const most = 512
	h := rdmap.OpReadResponse.Header(1)
	for at := 0; at < len(data); at += most {
		part := data[at:min(at+most, len(data))]
		h.Last, h.STag, h.TO = at+len(part) == len(data), r.SinkSTag, r.SinkTO+uint64(at)
		d.say("RDMA Read Response", d.Segment(h, part))
	}
}

// pingLong has rping's server write back a text that is longer than a packet.
func (d *ddpSession) pingLong(n int) {
	data := append(bytes.Repeat([]byte("abcdefgh"), n/8)[:n-1], 0)
	d.advertise("source", message.Advert{TO: sourceTO, STag: sourceSTag, Length: uint32(n)})
	d.respond(d.readRequest(n), data)
	d.segment(rdmap.OpSend, "the server's first go ahead")
	d.advertise("sink", message.Advert{TO: sinkTO, STag: sinkSTag, Length: uint32(n)})
	for at := 0; at < n; {
		seg := d.segment(rdmap.OpWrite, fmt.Sprintf("an RDMA Write of the text, from byte %d on", at))
		d.want(len(seg.Payload) > 0 && seg.TO == sinkTO+uint64(at), fmt.Sprintf("the text from TO %#x on", sinkTO+at),
			fmt.Sprintf("%s at %#x", wording.Bytes(len(seg.Payload)), seg.TO))
		at += len(seg.Payload)
	}
	d.segment(rdmap.OpSend, "the server's second go ahead")
}

// undelayed sees that a message with an untagged segment goes out while another is not acknowledged.
func (s *session) undelayed() {
	first, second := s.openSession(0), s.openSession(2)
	s.assoc.Settle(s.deadline())
	s.assoc.HoldAcks(true)
	first.advertise("source", sourceAdvert())
	first.readRequest(len(pingText()))
	second.advertise("source", sourceAdvert())
	m, ok := second.hear(s.opts.Timeout)
	s.shouldNot(!ok, "holds an RDMA Read Request back while what was sent before it is not acknowledged",
		"an RDMA Read Request before that")
	s.want(isOpcode(&m, rdmap.OpReadRequest), "an RDMA Read Request", describeMessage(&m))
	s.assoc.HoldAcks(false)
}

// sctpWays are the cases of what is below DDP's sessions, for the passive end.
func sctpWays() []Case {
	return []Case{
		withRping(overSCTP("segments", "C11", "RFC 5043 9",
			"What is longer than a packet comes in DDP Segments that each are in one DATA chunk.", func(s *session) {
				d := s.openSession(0)
				d.pingLong(8 << 10)
				d.close()
			})),
		withRping(overSCTP("undelayed", "C15", "RFC 5043 11.2",
			"An RDMA Read Request SHOULD NOT be held back until what was sent before it is acknowledged.",
			(*session).undelayed)),
		overSCTP("requests", "C07", "RFC 5043 6.4",
			"Each of many Initiates that come together is answered, by a Terminate where no more can wait.",
			(*session).openMany),
		overSCTP("error-among", "C13", "RFC 5043 11.3",
			"An error in one session of several is told by an RDMAP Terminate, and the others go on.",
			func(s *session) {
				other, d := s.openSession(2), s.openSession(0)
				d.works("the session is open")
				h := rdmap.OpWrite.Header(1)
				h.Last, h.STag = true, 0x00c0ff03
				d.say("RDMA Write to an STag that there is not", d.Segment(h, []byte("nobody")))
				d.segment(rdmap.OpTerminate, "an RDMAP Terminate: it MUST be generated when a DDP stream is terminated")
				d.ends("the QP has ended")
				other.works("its session has nothing to do with the other")
			}),
		overSCTP("abort-quiet", "C13", "RFC 5043 11.3",
			"A peer that aborts an association SHOULD NOT send an RDMAP Terminate in its sessions before.",
			(*session).abortsQuietly),
	}
}

// openMany asks for sessions on many streams at once.
func (s *session) openMany() {
	const wanted = 64
	ours := ddpSetupOf(wanted)
	if !s.associate(ours) {
		s.failf("an association: its INIT has the indication of DDP", "ABORT")
	}
	n := int(min(wanted, s.assoc.Peer.In, s.assoc.Peer.Out))
	for i := range n {
		d := s.stream(uint16(i))
		d.say("Initiate", d.Control(plainInitiate()))
	}
	answered := map[uint16]bool{}
	expected := fmt.Sprintf("an answer on each of %d streams", n)
	for until := s.deadline(); len(answered) < n; {
		m, ok := s.assoc.Next(until)
		if !ok {
			s.failf(expected, "answers on %d", len(answered))
		}
		if answersInitiate(&m) {
			answered[m.Stream] = true
		}
	}
	s.note(Checked, expected, nil)
	s.stillOpens()
}

// abortsQuietly sends what an SCTP aborts an association for, and looks at what comes before the ABORT.
func (s *session) abortsQuietly() {
	d := s.openSession(0)
	s.openSession(2)
	d.say("a DATA chunk without user data, which there may not be (RFC 9260, section 6.2)", noData(d.stream))
	told := false
	for until := s.deadline(); ; {
		m, ok := s.assoc.Next(until)
		if !ok {
			break
		}
		told = told || isOpcode(&m, rdmap.OpTerminate)
	}
	s.aborted()
	s.shouldNot(told, "sends an RDMAP Terminate before its ABORT", "no RDMAP Terminate before the ABORT")
	s.stillOpens()
}
