package decode_test

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/sctp"
)

// ended returns the row of a connection's summary that tells how it has ended.
func ended(t *testing.T, file []byte) string {
	t.Helper()
	for line := range strings.Lines(printed(t, file)) {
		if end, ok := strings.CutPrefix(line, "      ended"); ok {
			return strings.TrimSpace(end)
		}
	}
	return ""
}

// TestSessionEnds has each direction of a session end where its sender has ended it.
func TestSessionEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(s *sctpScript)
		want string
	}{
		{"terminated by both", func(s *sctpScript) {
			s.session()
			s.close()
		}, "-> end of session in packet 8 at 28, <- end of session in packet 9 at 12"},
		{"terminated by one", func(s *sctpScript) {
			s.session()
			s.function(bw, sctp.FunctionTerminate)
			s.down()
		}, "-> SHUTDOWN in packet 11 at 24, <- end of session in packet 8 at 12"},
		{"rejected", func(s *sctpScript) {
			s.function(fw, sctp.FunctionEnhancedInitiate)
			s.function(bw, sctp.FunctionEnhancedReject)
			s.down()
		}, "-> end of session by the other end in packet 6 at 8, <- end of session in packet 6 at 8"},
		{"refused", func(s *sctpScript) {
			s.function(fw, sctp.FunctionEnhancedInitiate)
			s.function(bw, sctp.FunctionTerminate)
			s.down()
		}, "-> end of session by the other end in packet 6 at 8, <- end of session in packet 6 at 4"},
		{"aborted", func(s *sctpScript) {
			s.session()
			s.packet(bw, tags[bw], sctpChunk(typeAbort, 0, nil))
		}, "-> ABORT by the other end in packet 8 at 24, <- ABORT in packet 8 at 8"},
		{"terminated by one, and aborted by the other", func(s *sctpScript) {
			s.session()
			s.function(fw, sctp.FunctionTerminate)
			s.packet(bw, tags[bw], sctpChunk(typeAbort, 0, nil))
		}, "-> end of session in packet 8 at 28, <- ABORT in packet 9 at 8"},
	} {
		s := newSCTP(t)
		s.up()
		c.play(s)
		file := s.file.Bytes()
		if got := ended(t, file); got != c.want {
			t.Errorf("%s: ended %q, want %q", c.name, got, c.want)
		}
		if failed := run(t, file).conns[0].Failed(); strings.Contains(c.name, "aborted") != (failed == "aborted") {
			t.Errorf("%s: failed %q", c.name, failed)
		}
	}
}
