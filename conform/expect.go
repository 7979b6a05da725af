package conform

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

func endingOf(err error) ending {
	if err == nil || errors.Is(err, io.EOF) {
		return endFIN
	}
	return endReset
}

func count(octets int) string {
	if octets == 1 {
		return "1 octet"
	}
	return fmt.Sprintf("%d octets", octets)
}

// need waits until n octets are there, and fails the case if they do not come.
func (s *Session) need(n int, expected string) *link {
	l := s.use()
	until := time.Now().Add(s.opts.Timeout)
	for len(l.in) < n {
		if l.end != endNone {
			s.leftover(l)
			s.Failf(expected, "the connection %s after %s of it", l.end, count(len(l.in)))
		}
		if !s.more(l, until) {
			s.leftover(l)
			s.Failf(expected, "%s of it within %v", count(len(l.in)), s.opts.Timeout)
		}
	}
	return l
}

// leftover records what was received and nobody took.
func (s *Session) leftover(l *link) {
	if len(l.in) > 0 {
		s.note(Received, count(len(l.in))+describe(l.in), l.in)
	}
}

// take takes n octets and records them.
func (s *Session) take(l *link, n int, text string) []byte {
	b := l.in[:n:n]
	l.in = l.in[n:]
	s.note(Received, fmt.Sprintf("%s, %s%s", text, count(n), describe(b)), b)
	return b
}

// Octets waits for n octets.
func (s *Session) Octets(n int, text string) []byte {
	return s.take(s.need(n, text), n, text)
}

// Frame waits for a whole startup frame. It checks nothing but its length.
func (s *Session) Frame(text string) mpa.StartupFrame {
	l := s.need(mpa.StartupHeaderLen, text)
	n := mpa.StartupHeaderLen + int(mpa.StartupFrame(l.in).PDLength())
	if n > mpa.StartupHeaderLen+mpa.MaxPrivateData {
		s.leftover(l)
		s.Failf(text+" with a PD_Length of at most 512", "PD_Length %d", n-mpa.StartupHeaderLen)
	}
	s.need(n, text+" with as many octets as its PD_Length says")
	return mpa.StartupFrame(s.take(l, n, text))
}

// sight is what the peer does next.
type sight uint8

const (
	sightNothing sight = iota // within the time
	sightOctets
	sightEnd
)

// look waits for what the peer does next.
func (s *Session) look(within time.Duration) sight {
	l := s.use()
	until := time.Now().Add(within)
	for len(l.in) == 0 {
		if l.end != endNone {
			return sightEnd
		}
		if !s.more(l, until) {
			return sightNothing
		}
	}
	return sightOctets
}

// ExpectNothing waits for the quiet time, and fails the case if the peer sends
// anything or ends the connection. because says why it must not.
func (s *Session) ExpectNothing(because string) {
	expected := "nothing, and an open connection: " + because
	switch l := s.use(); s.look(s.opts.Quiet) {
	case sightOctets:
		s.leftover(l)
		s.Failf(expected, "%s%s", count(len(l.in)), describe(l.in))
	case sightEnd:
		s.Failf(expected, "the connection %s", l.end)
	}
	s.note(Checked, expected, nil)
}

// ExpectClosed fails the case unless the peer closes or resets the connection, and
// sends nothing before. because says why it must.
func (s *Session) ExpectClosed(because string) { s.expectClosed(s.opts.Timeout, because) }

// ExpectTimeout is ExpectClosed after the peer's own timeout.
func (s *Session) ExpectTimeout(because string) { s.expectClosed(s.opts.SlowTimeout, because) }

func (s *Session) expectClosed(within time.Duration, because string) {
	expected := "the connection closed without a word: " + because
	switch l := s.use(); s.look(within) {
	case sightOctets:
		s.leftover(l)
		s.Failf(expected, "%s%s", count(len(l.in)), describe(l.in))
	case sightNothing:
		s.Failf(expected, "still open after %v", within)
	}
	s.note(Checked, expected, nil)
}

// ExpectFIN is ExpectClosed for a graceful close.
func (s *Session) ExpectFIN(because string) {
	s.ExpectClosed(because)
	s.Want(s.link.end == endFIN, "a FIN: "+because, s.link.end)
}

// Drain takes what the peer sends until it ends the connection or is quiet, and
// returns it and whether the connection has ended.
func (s *Session) Drain(text string) (octets []byte, closed bool) {
	l := s.use()
	for {
		switch s.look(s.opts.Quiet) {
		case sightNothing:
			return octets, false
		case sightEnd:
			return octets, true
		}
		octets = append(octets, s.take(l, len(l.in), text)...)
	}
}
