package conform

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// need waits until n bytes are there, and fails the case if they do not come.
func (s *session) need(n int, expected string) *link {
	l := s.use()
	if err := l.Need(n, s.deadline()); err != nil {
		s.missing(l, err, expected)
	}
	return l
}

// missing fails the case for something that did not come, or not whole.
func (s *session) missing(l *link, err error, expected string) {
	s.noteEnd(l)
	s.leftover(l)
	var m *script.MissingError
	switch {
	case !errors.As(err, &m):
		s.failf(expected, "%v", err)
	case m.End != script.Open:
		s.failf(expected, "%s of it, and then the connection %v", wording.Bytes(m.Got), m.End)
	}
	if m.Got == 0 {
		s.failf(expected, "nothing within %v", s.opts.Timeout)
	}
	s.failf(expected, "%s of it within %v", wording.Bytes(m.Got), s.opts.Timeout)
}

// noteEnd records that the peer's half of the connection has ended, once.
func (s *session) noteEnd(l *link) {
	if l.End() != script.Open && !l.ended {
		l.ended = true
		s.note(Saw, "the connection is "+l.End().String(), nil)
	}
}

// maxLeftover bounds how much of what nobody took a dialogue keeps, in bytes.
const maxLeftover = 4 << 10

// leftover records what was received and nobody took.
func (s *session) leftover(l *link) {
	in := l.Received()
	if len(in) == 0 {
		return
	}
	text := wording.Bytes(len(in)) + script.DescribeStartup(in)
	if len(in) > maxLeftover {
		text += ", of which these are the first " + wording.Bytes(maxLeftover)
		in = in[:maxLeftover]
	}
	s.note(Received, text, in)
}

// unexpected fails the case for the bytes that have come.
func (s *session) unexpected(l *link, expected string) {
	s.leftover(l)
	s.failf(expected, "%s%s", wording.Bytes(len(l.Received())), script.DescribeStartup(l.Received()))
}

// consume consumes n bytes and records them.
func (s *session) consume(l *link, n int, text string) []byte {
	b := l.Take(n)
	s.note(Received, fmt.Sprintf("%s, %s%s", text, wording.Bytes(n), script.DescribeStartup(b)), b)
	return b
}

// take waits for n bytes.
func (s *session) take(n int, text string) []byte {
	return s.consume(s.need(n, text), n, text)
}

// frame waits for a whole startup frame. It checks only its length.
func (s *session) frame(text string) mpa.StartupFrame {
	l := s.need(mpa.StartupHeaderLen, text)
	n := int(mpa.StartupFrame(l.Received()).PDLength())
	if n > mpa.MaxPrivateData {
		s.leftover(l)
		s.failf(text+" with a PD_Length of at most 512", "PD_Length %d", n)
	}
	return mpa.StartupFrame(s.take(mpa.StartupHeaderLen+n, text))
}

// sight is what the peer does next.
type sight uint8

const (
	sightNothing sight = iota // within the time
	sightBytes
	sightEnd
)

// look waits for what the peer does next.
func (s *session) look(within time.Duration) sight {
	l := s.use()
	switch err := l.Need(1, time.Now().Add(within)); {
	case err == nil:
		return sightBytes
	case l.End() == script.Open:
		return sightNothing
	}
	s.noteEnd(l)
	return sightEnd
}

// expectNothing waits for the quiet time, and fails the case if the peer sends
// anything or ends the connection. because says why it must not.
func (s *session) expectNothing(because string) {
	expected := "nothing, and an open connection: " + because
	switch l := s.use(); s.look(s.quietTime()) {
	case sightBytes:
		s.unexpected(l, expected)
	case sightEnd:
		s.failf(expected, "the connection is %v", l.End())
	}
	s.note(Checked, expected, nil)
}

// expectClosed fails the case unless the peer closes or resets the connection, and
// sends nothing before. because says why it must.
func (s *session) expectClosed(because string) { s.expectEnd(s.opts.Timeout, wordless+because) }

// expectTimeout is expectClosed after the peer's own timeout. [Q12]
func (s *session) expectTimeout() {
	s.expectEnd(s.opts.SlowTimeout, wordless+"implementations SHOULD put a timeout on waiting for the startup frames")
}

const wordless = "the connection closed without a word: "

// expectEnd fails the case unless the peer closes its half and sends no more.
func (s *session) expectEnd(within time.Duration, expected string) {
	switch l := s.use(); s.look(within) {
	case sightBytes:
		s.unexpected(l, expected)
	case sightNothing:
		s.failf(expected, "still open after %v", within)
	}
	s.note(Checked, expected, nil)
}

// expectFIN is expectClosed for a graceful close.
func (s *session) expectFIN(because string) {
	s.expectClosed(because)
	s.want(s.link.End() == script.FIN, "a FIN: "+because, s.link.End())
}

// ends expects the end of the connection, whatever comes before it. because says why
// it must end.
func (s *session) ends(because string) {
	l := s.use()
	err := l.Until(s.deadline())
	s.leftover(l)
	s.noteEnd(l)
	got := "still open"
	if errors.Is(err, script.ErrEndless) {
		got += " after " + wording.Bytes(len(l.Received()))
	}
	s.want(err == nil, "the connection closed: "+because, got)
}
