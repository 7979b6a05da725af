package decode_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

const finAck, rstAck = capture.FIN | capture.ACK, capture.RST | capture.ACK

var (
	request2 = enhanced(mpa.KeyRequest, mpa.Enhanced{IRD: 1, ORD: 1})
	reply2   = enhanced(mpa.KeyReply, mpa.Enhanced{IRD: 1, ORD: 1})
)

// asks has the Initiator send its Request, and the Responder acknowledge it.
func (p *tape) asks() {
	p.data(fw, request2)
	p.packet(bw, capture.ACK, nil)
}

// wait lets time pass.
func (p *tape) wait(d time.Duration) { p.now = p.now.Add(d - time.Millisecond) }

const (
	iGaveUp  = "closed-at-startup [Q16] -> at 24: the Initiator has "
	rGaveUp  = "closed-at-startup [Q16] <- at 0: the Responder "
	unheard  = "request-not-acknowledged [] -> at 0: TCP never acknowledged the Initiator's frame, though it was sent again: "
	reset    = "reset [] "
	notDone  = "startup-open [] <- at 0: the capture ends before the startup is complete"
	fallback = "retry with revision 1"
)

// unfinishedCases are startups that do not come to an end: what is found that is serious, or about their end.
var unfinishedCases = []struct {
	name string
	play func(p *tape)
	want []string
}{
	{"the Initiator closes, and the Responder after it", func(p *tape) {
		p.asks()
		p.wait(10 * time.Second)
		p.packet(fw, finAck, nil)
		p.packet(bw, finAck, nil)
		p.packet(fw, capture.ACK, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 10.001s: nothing arrived"}},
	{"the Initiator closes, and the capture ends", func(p *tape) {
		p.asks()
		p.wait(2 * time.Second)
		p.packet(fw, finAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 2.001s: nothing arrived"}},
	{"the Initiator resets", func(p *tape) {
		p.asks()
		p.wait(10 * time.Second)
		p.packet(fw, rstAck, nil)
	}, []string{iGaveUp + "reset the connection: no MPA Reply Frame within 10.001s: nothing arrived", reset + "->"}},
	{"the Initiator closes and then resets", func(p *tape) {
		p.asks()
		p.packet(fw, finAck, nil)
		p.packet(fw, rstAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 2ms", reset + "->"}},
	{"the Initiator closes, and the Responder resets", func(p *tape) {
		p.asks()
		p.packet(fw, finAck, nil)
		p.packet(bw, rstAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 2ms", reset + "<-"}},
	{"half a Reply, and the Initiator closes", func(p *tape) {
		p.asks()
		p.data(bw, reply2[:18])
		p.wait(10 * time.Second)
		p.packet(fw, finAck, nil)
		p.packet(bw, finAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 10.002s: 18 of 20 bytes of its header arrived"}},
	{"half a Reply, and the Responder closes", func(p *tape) {
		p.asks()
		p.data(bw, reply2[:22])
		p.packet(bw, finAck, nil)
		p.packet(fw, finAck, nil)
	}, []string{rGaveUp + "closed the connection after 22 bytes of its answer, 3ms after"}},
	{"the Responder closes", func(p *tape) {
		p.asks()
		p.packet(bw, finAck, nil)
		p.packet(fw, finAck, nil)
	}, []string{rGaveUp + "closed the connection without an answer, 2ms after the Initiator's frame (a responder that does not know RFC 6581"}},
	{"the Responder closes after long", func(p *tape) {
		p.asks()
		p.wait(30 * time.Second)
		p.packet(bw, finAck, nil)
		p.packet(fw, finAck, nil)
	}, []string{rGaveUp + "closed the connection without an answer, 30.001s after the Initiator's frame (the Responder has not refused the frame at once"}},
	{"the Responder resets", func(p *tape) {
		p.asks()
		p.packet(bw, rstAck, nil)
	}, []string{rGaveUp + "reset the connection without an answer, 2ms", reset + "<-"}},
	{"the Responder closes and then resets", func(p *tape) {
		p.asks()
		p.packet(bw, finAck, nil)
		p.packet(bw, rstAck, nil)
	}, []string{rGaveUp + "closed the connection without an answer, 2ms", reset + "<-"}},
	{"the Responder closes, and has had more than was captured", func(p *tape) {
		p.asks()
		p.at(bw, finAck, p.seq[bw], p.seq[fw]+10, nil)
	}, []string{rGaveUp + "closed the connection without an answer, 2ms"}},
	{"a part of the Reply is not captured, and the Initiator resets", func(p *tape) {
		p.asks()
		p.at(bw, capture.ACK, p.seq[bw]+4, p.seq[fw], reply2[4:18])
		p.packet(fw, rstAck, nil)
	}, []string{reset + "->"}},
	{"the Initiator alone", func(p *tape) {
		p.seq = [2]uint32{5000, 6000} // another connection, of which the other direction is not captured
		p.ends[fw] = netip.AddrPortFrom(client.Addr(), 41000)
		p.packet(fw, capture.SYN, nil)
		p.data(fw, request2)
		p.packet(fw, finAck, nil)
	}, nil},
	{"streaming data that are cut, and then a Reply that was not captured", func(p *tape) {
		p.snap = 44
		p.data(bw, []byte("hello, which is cut"))
		p.snap = 0
		p.asks()
		p.at(bw, finAck, p.seq[bw]+24, p.seq[fw], nil)
		p.at(fw, capture.ACK, p.seq[fw], p.seq[bw]+25, nil)
	}, nil},
	{"both close at once", func(p *tape) {
		p.asks()
		p.wait(10 * time.Second)
		p.at(fw, finAck, p.seq[fw], p.seq[bw], nil)
		p.at(bw, finAck, p.seq[bw], p.seq[fw], nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 10.001s",
		rGaveUp + "has closed the connection too, before it knew"}},
	{"both close at once, the Responder first", func(p *tape) {
		p.asks()
		p.at(bw, finAck, p.seq[bw], p.seq[fw], nil)
		p.at(fw, finAck, p.seq[fw], p.seq[bw], nil)
	}, []string{rGaveUp + "closed the connection without an answer",
		iGaveUp + "closed the connection too, before it knew"}},
	{"the Responder closes, and its FIN is captured after the answer to it", func(p *tape) {
		p.asks()
		p.at(fw, finAck, p.seq[fw], p.seq[bw]+1, nil)
		p.at(bw, finAck, p.seq[bw], p.seq[fw], nil)
	}, []string{rGaveUp + "closed the connection without an answer, 3ms"}},
	{"a Reply that is captured after the Initiator's FIN, which acknowledges it", func(p *tape) {
		p.asks()
		p.at(fw, finAck, p.seq[fw], p.seq[bw]+uint32(len(reply2)), nil)
		p.data(bw, reply2)
	}, nil},
	{"a Reply that comes too late", func(p *tape) {
		p.asks()
		p.wait(10 * time.Second)
		p.packet(fw, finAck, nil)
		p.wait(5 * time.Second)
		p.data(bw, reply2)
		p.packet(fw, capture.RST, nil)
	}, []string{
		iGaveUp + "closed the connection: no MPA Reply Frame within 10.001s",
		"answer-too-late [] <- at 0: the answer comes after the Initiator has closed the connection, 15.001s after its frame", reset + "->",
	}},
	{"a Request that gets nowhere", func(p *tape) {
		p.data(fw, request2)
		for range 5 {
			p.wait(2 * time.Second)
			p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		}
		p.packet(fw, rstAck, nil)
	}, []string{unheard + "120 bytes in 10.001s", reset + "->"}},
	{"a Request that gets nowhere, and a FIN", func(p *tape) {
		p.data(fw, request2)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(fw, finAck, nil)
	}, []string{unheard + "24 bytes in 2ms"}},
	{"a Request that gets nowhere, up to the end of the capture", func(p *tape) {
		p.data(fw, request2)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
	}, []string{unheard + "24 bytes in 1ms"}},
	{"a Request that gets nowhere, and an RST of the other host", func(p *tape) {
		p.data(fw, request2)
		p.wait(12 * time.Second)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(bw, capture.RST, nil)
	}, []string{
		rGaveUp + "reset the connection without an answer, 12.001s after the Initiator's frame (TCP never acknowledged the frame",
		reset + "<-",
	}},
	{"a Request that is sent again, acknowledged, and followed by an RST", func(p *tape) {
		p.data(fw, request2)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(bw, rstAck, nil)
	}, []string{
		rGaveUp + "reset the connection without an answer, 2ms after the Initiator's frame (a responder that does not know RFC 6581",
		reset + "<-",
	}},
	{"the Initiator closes right behind its Request", func(p *tape) {
		p.data(fw, request2)
		p.now = p.now.Add(100*time.Microsecond - time.Millisecond)
		p.packet(fw, finAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 100µs: nothing arrived"}},
	{"a Request that is sent again, and then acknowledged", func(p *tape) {
		p.data(fw, request2)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(bw, capture.ACK, nil)
		p.packet(fw, finAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 3ms"}},
	{"a Request that is acknowledged after the Initiator has closed", func(p *tape) {
		p.data(fw, request2)
		p.wait(9 * time.Second)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(fw, finAck, nil)
		p.packet(bw, capture.ACK, nil)
		p.packet(bw, finAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 9.001s: nothing arrived"}},
	{"a Request that is acknowledged by the Responder's FIN", func(p *tape) {
		p.data(fw, request2)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(fw, finAck, nil)
		p.packet(bw, finAck, nil)
	}, []string{iGaveUp + "closed the connection: no MPA Reply Frame within 2ms: nothing arrived"}},
	{"a Request that is answered after the Initiator has closed", func(p *tape) {
		p.data(fw, request2)
		p.at(fw, capture.ACK|capture.PSH, p.seq[fw]-uint32(len(request2)), p.seq[bw], request2)
		p.packet(fw, finAck, nil)
		p.data(bw, reply2)
		p.packet(fw, capture.RST, nil)
	}, []string{
		iGaveUp + "closed the connection: no MPA Reply Frame within 2ms: nothing arrived",
		"answer-too-late [] <- at 0: the answer comes after the Initiator has closed the connection, 3ms after its frame", reset + "->",
	}},
	{"no end at all", func(p *tape) {
		p.asks()
		p.packet(bw, capture.ACK, nil)
	}, []string{notDone + ", 2ms after the Initiator's frame"}},
	{"times that go backwards", func(p *tape) {
		p.asks()
		p.wait(-5 * time.Second)
		p.packet(fw, finAck, nil)
		p.packet(bw, finAck, nil)
	}, []string{iGaveUp + "closed the connection before it had an answer (the times of the packets go backwards"}},
	{"times that go backwards, and the Responder closes", func(p *tape) {
		p.asks()
		p.wait(-5 * time.Second)
		p.packet(bw, finAck, nil)
		p.packet(fw, finAck, nil)
	}, []string{rGaveUp + "closed the connection without an answer ("}},
	{"a new connection between the same ends", func(p *tape) {
		p.asks()
		p.seq[fw] += 1 << 20
		p.packet(fw, capture.SYN, nil)
	}, []string{"startup-open [] <- at 0: another connection between the same ends begins before the startup is complete, 2ms"}},
}

// TestUnfinished has startups that do not come to an end. The end that has closed or reset the
// connection first has given up.
//
// Proves Q16.
func TestUnfinished(t *testing.T) {
	for _, c := range unfinishedCases {
		p := opened()
		c.play(p)
		r := p.decoded(t)
		var got []string
		for _, text := range r.texts {
			if severity, rest, _ := strings.Cut(text, " "); severity != "note" ||
				strings.HasPrefix(rest, "startup-open") {
				got = append(got, rest)
			}
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
		if strings.HasPrefix(c.name, "the Initiator alone") || strings.HasPrefix(c.name, "streaming") ||
			strings.HasPrefix(c.name, "a part") {
			continue // it is not known whether it has failed
		}
		if failed := r.conns[0].Failed() != ""; failed != (len(c.want) > 0) {
			t.Errorf("%s: failed %v", c.name, failed)
		}
		if refused := strings.Contains(strings.Join(got, ""), fallback); refused &&
			!strings.Contains(strings.Join(c.want, ""), "Responder") {
			t.Errorf("%s: advice to fall back: %q", c.name, got)
		}
	}
}

// TestUnfinishedUnopened has the handshake not be in the capture: the Responder's numbers are not known then.
func TestUnfinishedUnopened(t *testing.T) {
	for _, c := range []struct {
		name  string
		ack   uint32 // what the Initiator's FIN acknowledges more than its Request
		first bool   // the Responder has closed before
		want  []string
	}{
		{"the Responder closes", 1, true, []string{rGaveUp + "closed the connection without an answer"}},
		{"no answer", 0, false, []string{iGaveUp +
			"closed the connection: no MPA Reply Frame within 2ms: nothing arrived"}},
		{"an answer that the capture lacks", 24, false, nil},
	} {
		p := newTape(capture.LinkRaw)
		p.asks()
		if c.first {
			p.at(bw, finAck, p.seq[bw], p.seq[fw], nil)
		}
		p.at(fw, finAck, p.seq[fw], p.seq[bw]+c.ack, nil)
		r := p.decoded(t)
		if failed := r.conns[0].Failed() != ""; failed != (c.want != nil) {
			t.Errorf("%s: failed %v", c.name, failed)
		}
		var got []string
		for _, text := range r.texts {
			if rest, serious := strings.CutPrefix(text, "warning "); serious {
				got = append(got, rest)
			}
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

// TestUnfinishedSession has DDP Stream Sessions over SCTP that are not answered.
//
// Proves C04.
func TestUnfinishedSession(t *testing.T) {
	abort := func(s *sctpScript, d capture.Dir) { s.packet(d, tags[d], sctpChunk(typeAbort, 0, nil)) }
	for _, c := range []struct {
		name string
		play func(s *sctpScript)
		want string
	}{
		{"shut down by the active end", func(s *sctpScript) {
			s.function(fw, sctp.FunctionInitiate)
			s.ack(bw)
			s.down()
		}, "warning closed-at-startup [Q16] -> at 4: the active end has shut the association down, 4ms after the Initiate, which has no answer"},
		{"shut down by the passive end", func(s *sctpScript) {
			s.function(fw, sctp.FunctionInitiate)
			s.packet(bw, tags[bw], sctpChunk(typeShutdown, 0, binary.BigEndian.AppendUint32(nil, s.tsn[fw]-1)))
			s.packet(bw, tags[bw], sctpChunk(typeShutDone, 0, nil))
		}, "warning closed-at-startup [Q16] <- at 0: the passive end has shut the association down, 2ms after the Initiate, which has no answer"},
		{"aborted by the active end", func(s *sctpScript) {
			s.function(fw, sctp.FunctionInitiate)
			s.ack(bw)
			s.now = s.now.Add(10 * time.Second)
			abort(s, fw)
		}, "warning association-aborted [] -> at 4: the association is aborted by the active end, 10.002s after the Initiate, which has no answer"},
		{"aborted by the passive end", func(s *sctpScript) {
			s.function(fw, sctp.FunctionInitiate)
			abort(s, bw)
		}, "warning association-aborted [] <- at 0: the association is aborted by the passive end, 1ms after the Initiate, which has no answer"},
		{"an Initiate that gets nowhere", func(s *sctpScript) {
			for range 3 {
				s.function(fw, sctp.FunctionInitiate)
				s.tsn[fw]--
				s.ssn[fw]--
			}
			abort(s, fw)
		}, "warning request-not-acknowledged [] -> at 0: SCTP never acknowledged the Initiate, though it was sent again: ABORT, 3ms after the Initiate"},
		{"an Initiate that is sent again, and acknowledged", func(s *sctpScript) {
			s.function(fw, sctp.FunctionInitiate)
			s.tsn[fw]--
			s.ssn[fw]--
			s.function(fw, sctp.FunctionInitiate)
			s.ack(bw)
			abort(s, fw)
		}, "warning association-aborted [] -> at 4: the association is aborted by the active end, 3ms after"},
		{"no end at all", func(s *sctpScript) {
			s.function(fw, sctp.FunctionInitiate)
			s.ack(bw)
		}, "note startup-open [] <- at 0: end of capture, 1ms after the Initiate, which has no answer"},
	} {
		s := newSCTP(t)
		s.up()
		c.play(s)
		if r := run(t, s.file.Bytes()); len(r.texts) != 1 || !strings.HasPrefix(r.texts[0], c.want) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.want)
		}
	}
}
