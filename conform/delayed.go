package conform

import (
	"strconv"

	"github.com/goiwarp/iwarp/mpa"
)

// Streaming is what two applications say to each other in streaming mode before they
// start MPA on the same connection: delayed startup, RFC 5044, section 7.1. First the
// Initiator says something. What the Responder says is its last streaming message, after
// which the Initiator sends its first frame. Either may be empty.
type Streaming struct {
	Initiator, Responder string
}

// converse has both sides say what precedes the startup.
func (s *session) converse() {
	s.sayOrHear(true)
	s.sayOrHear(false)
}

// sayOrHear says what we say, or waits for what the peer says, in the Initiator's turn or
// in the Responder's.
func (s *session) sayOrHear(initiator bool) {
	text, name := s.opts.Streaming.Responder, "the Responder's last streaming message"
	if initiator {
		text, name = s.opts.Streaming.Initiator, "the Initiator's streaming message"
	}
	switch {
	case text == "":
	case initiator == (s.role() == mpa.RoleInitiator):
		got := string(s.take(len(text), name))
		s.want(got == text, strconv.Quote(text), strconv.Quote(got))
	default:
		s.send(name, []byte(text))
	}
}

const delayedSection = "RFC 5044 7.1; CULLEY 8.1.2"

// delayed marks cases that do the streaming themselves.
func delayed(cases ...Case) []Case {
	for i := range cases {
		cases[i].Delayed = true
	}
	return cases
}

func startsAfterStreaming(s *session) {
	s.converse()
	s.bringUp()
	s.works()
}

// delayedRequests start MPA after streaming data, with the peer as Responder.
func delayedRequests() []Case {
	return delayed(
		toResponder("delayed/req", "Q13 Q14 K06", delayedSection,
			"After the Responder's last streaming message the first frame starts MPA, and the connection works.",
			startsAfterStreaming),
		toResponder("delayed/req-waits", "Q09 Q14 K02", delayedSection,
			"After its last streaming message the Responder sends nothing before it has the first frame.",
			func(s *session) {
				s.converse()
				s.expectNothing("it waits for the Initiator's first frame")
				s.bringUp()
			}),
		toResponder("delayed/req-bytes", "Q13 Q14", delayedSection,
			"A streaming message that comes byte by byte is told apart from the first frame.", func(s *session) {
				s.sendEach("the Initiator's streaming message", []byte(s.opts.Streaming.Initiator))
				s.sayOrHear(false)
				s.bringUp()
				s.works()
			}),
	)
}

// delayedReplies start MPA after streaming data, with the peer as Initiator.
func delayedReplies() []Case {
	return delayed(
		toInitiator("delayed/rep", "Q13 Q14 K06", delayedSection,
			"After our last streaming message the Initiator starts MPA, and the connection works.",
			startsAfterStreaming),
		toInitiator("delayed/rep-waits", "Q14 K06", delayedSection,
			"The Initiator does not start MPA before our last streaming message.", func(s *session) {
				s.sayOrHear(true)
				if s.opts.Streaming.Responder == "" {
					s.notApplicable("there is no streaming message of the Responder")
				}
				s.expectNothing("our last streaming message has not come")
				s.sayOrHear(false)
				s.bringUp()
			}),
		toInitiator("delayed/rep-bytes", "Q13 Q14 K06", delayedSection,
			"When our last streaming message comes byte by byte, the Initiator starts MPA after the last byte.",
			func(s *session) {
				s.sayOrHear(true)
				s.sendEach("the Responder's last streaming message", []byte(s.opts.Streaming.Responder))
				s.bringUp()
				s.works()
			}),
	)
}
