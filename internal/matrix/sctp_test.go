package matrix_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
)

// sctpGroup picks the rows of one group over SCTP, at least so many.
func sctpGroup(t *testing.T, name string, atLeast int) {
	t.Helper()
	t.Parallel()
	report := asDemanded(t, matrix.Config{Network: network.SCTP,
		Match: regexp.MustCompile("^SCTP " + regexp.QuoteMeta(name) + "/")})
	if report.Cells < atLeast {
		t.Errorf("group %q has %d rows, and should have %d", name, report.Cells, atLeast)
	}
}

// TestSCTPStartup runs both kinds of Initiate.
//
// Proves C01, C02, C04, E02, E07: either side sends first, and the answer is of the kind of
// the Initiate.
func TestSCTPStartup(t *testing.T) { sctpGroup(t, "startup", 9) }

// TestSCTPRTRIndications runs every set offered against every set supported.
//
// Proves C01, E08, E09, E10.
func TestSCTPRTRIndications(t *testing.T) { sctpGroup(t, "RTR indications", 7*7) }

// TestSCTPDepths runs the rules of IRD and ORD.
//
// Proves E03, E04, E05, E06, E14.
func TestSCTPDepths(t *testing.T) { sctpGroup(t, "IRD and ORD", 17) }

// TestSCTPPrivateData runs none, the most and too much of it.
//
// Proves C02.
func TestSCTPPrivateData(t *testing.T) { sctpGroup(t, "private data", 10) }

// TestSCTPRejections runs rejections of both kinds.
//
// Proves C01, C02, C03, E03, E05, E06.
func TestSCTPRejections(t *testing.T) { sctpGroup(t, "rejections", 7) }

// TestSCTPByHand runs messages that our ends would not send.
//
// Proves C01, C02, C03, C04, C09, E07, E08, E10, E13.
func TestSCTPByHand(t *testing.T) { sctpGroup(t, "messages by hand", 19) }

// TestSCTPEveryDemandCanFail spoils each demand of rows of each kind.
func TestSCTPEveryDemandCanFail(t *testing.T) {
	t.Parallel()
	picked := regexp.MustCompile(`^SCTP (startup/(enhanced, the responder.*|plain, the responder.*)` +
		`|RTR indications/offered (send, supported read|write, all.*)|IRD and ORD/(the responder raises its IRD|Reply's ORD needs.*)` +
		`|private data/(enhanced: 508 bytes|plain: one byte too many in the Accept)|rejections/the responder says.*` +
		`|messages by hand/(answer: (knows.*|Accept to.*)|Initiate: an Accept.*))$`)
	wantSpoiled(t, matrix.SCTPGroups(), picked,
		"V", "dialect", "codes", "flags", "request", "reply", "ird", "ord", "p2p", "rtr", "answer",
		"pd", "first", "data", "code",
		"fellback", "closed", "indication", "chunks", "ssn", "last")
}

// TestSCTPStray: what comes from elsewhere, and begins no association, is none of a row's.
func TestSCTPStray(t *testing.T) {
	stray := []matrix.Packet{matrix.Control(true, 8), matrix.Data(true, 7, 1, 0, 17, "\x00\x00\x00\x01"),
		matrix.Control(false, 6), matrix.Init(true, 1)}
	if n, passed := matrix.Associations(stray...); n != 1 || passed != len(stray) {
		t.Errorf("%d associations, and %d packets of %d passed on, want 1 and all", n, passed, len(stray))
	}
}

// TestSCTPWire: what packets say by themselves.
func TestSCTPWire(t *testing.T) {
	const initiate, accepted, end = "\x00\x00\x00\x01", "\x00\x00\x00\x02", "\x00\x01\x00\x04"
	good := []matrix.Packet{
		matrix.Init(true, 1), matrix.Init(false, 1),
		matrix.Data(true, 7, 1, 0, 17, initiate), matrix.Data(false, 7, 1, 0, 17, accepted),
		matrix.Data(true, 7, 1, 0, 17, initiate),
		matrix.Data(true, 7, 2, 0, 17, end), matrix.Data(false, 7, 2, 0, 17, end), matrix.Control(true, 14),
	}
	with := func(n int, p matrix.Packet) []matrix.Packet {
		all := slices.Clone(good)
		all[n] = p
		return all
	}
	for _, c := range []struct {
		name    string
		packets []matrix.Packet
		want    string
	}{
		{"as it should be", good, ""},
		{"no indication in the INIT ACK", with(1, matrix.Init(false, 0)), "indication=1/0"},
		{"indication of something else", with(0, matrix.Init(true, 2)), "indication=0/1"},
		{"an ordered chunk", with(3, matrix.Data(false, 3, 1, 0, 17, accepted)), "chunks=ordered"},
		{"a fragment", with(3, matrix.Data(false, 6, 1, 0, 17, accepted)), "chunks=fragmented"},
		{"another PPID", with(5, matrix.Data(true, 7, 2, 0, 51, end)), "chunks=PPID-51 last=segment/terminate"},
		{"another stream", with(5, matrix.Data(true, 7, 2, 1, 17, end)), "chunks=of-several-streams"},
		{"a gap", with(6, matrix.Data(false, 7, 2, 0, 17, "\x00\x02\x00\x04")), "ssn=gapless/2-in-place-of-1"},
		{"the same again", with(6, matrix.Data(false, 7, 2, 0, 17, "\x00\x00\x00\x04")), "ssn=gapless/0-in-place-of-1"},
		{"no Terminate", with(6, matrix.Data(false, 7, 2, 0, 16, "\x00\x01"+string(make([]byte, 20)))),
			"last=terminate/segment"},
		{"rejected", with(3, matrix.Data(false, 7, 1, 0, 17, "\x00\x00\x00\x03")), "codes=1/3"},
		{"aborted", with(7, matrix.Control(false, 6)), "closed=abort-by-responder"},
		{"not ended", good[:7], "closed=open"},
		{"a chunk too short for its header", with(5, matrix.Control(true, 0)), "last=initiate/terminate"},
	} {
		want := map[string]string{
			"indication": "1/1", "chunks": "as-they-should", "ssn": "gapless/gapless", "codes": "1/2",
			"last": "terminate/terminate", "closed": "shutdown",
		}
		for _, word := range strings.Fields(c.want) {
			key, value, _ := strings.Cut(word, "=")
			want[key] = value
		}
		got := matrix.OnSCTP(c.packets)
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("%s: %s=%s, want %s", c.name, key, got[key], want[key])
			}
		}
	}
}
