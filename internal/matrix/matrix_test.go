package matrix_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// patience is the time that a row has on a loaded machine.
const patience = time.Minute

// asDemanded runs what a Config picks and reports what is not as demanded.
func asDemanded(t *testing.T, cfg matrix.Config) *matrix.Report {
	t.Helper()
	cfg.Timeout = patience
	report, err := matrix.Run(t.Context(), cfg)
	testrig.Must(t, err)
	if report.AsDemanded != report.Cells {
		var text strings.Builder
		testrig.Must(t, report.Report().WriteText(&text, false))
		t.Errorf("%d of %d cells are as demanded:\n%s", report.AsDemanded, report.Cells, text.String())
	}
	rows := report.Wider
	for _, f := range report.Figures {
		for _, c := range f.Cells {
			rows = append(rows, &c.Result)
		}
	}
	for _, r := range rows {
		cited(t, r)
	}
	return report
}

var id = regexp.MustCompile(`^[A-Z][0-9]{2}$`)

// cited holds that a row names the requirements that it is about, and where they are from.
func cited(t *testing.T, r *matrix.Result) {
	t.Helper()
	if r.Section == "" || strings.ContainsAny(r.Section, "[]") || len(r.Requirements) == 0 {
		t.Errorf("%s: section %q, requirements %q", r.Name, r.Section, r.Requirements)
	}
	for _, name := range r.Requirements {
		if !id.MatchString(name) {
			t.Errorf("%s: requirement %q", r.Name, name)
		}
	}
}

// group picks the rows of one group, at least so many.
func group(t *testing.T, name string, atLeast int) {
	t.Helper()
	report := asDemanded(t, matrix.Config{Match: regexp.MustCompile("^" + regexp.QuoteMeta(name) + "/")})
	if report.Cells < atLeast {
		t.Errorf("group %q has %d rows, and should have %d", name, report.Cells, atLeast)
	}
}

// TestFigures runs figures 2, 3 and 4.
//
// Proves N01, N02, N03, N04, N05, N06: every cell of the figures, on both ends and on the wire.
func TestFigures(t *testing.T) {
	report := asDemanded(t, matrix.Config{Figures: []int{2, 3, 4}})
	if report.Cells != 9+9+16 || len(report.Wider) != 0 {
		t.Errorf("%d cells of figures and %d wider ones", report.Cells, len(report.Wider))
	}
}

// TestUserTCP runs all cells over a TCP in user space.
func TestUserTCP(t *testing.T) {
	t.Parallel()
	cells, wider := matrix.Planned()
	if report := asDemanded(t, matrix.Config{Network: network.UserTCP}); report.Cells != cells+wider {
		t.Errorf("%d cells, want %d", report.Cells, cells+wider)
	}
}

// TestDocumentedNumbers holds the numbers that docs/command.md has.
func TestDocumentedNumbers(t *testing.T) {
	const command = "../../docs/command.md"
	cells, wider := matrix.Planned()
	testrig.WantInDocument(t, command, "runs the %d cells of the RNIC interoperability draft, and %d more", cells, wider)
	testrig.WantInDocument(t, command, "    %d cells, %[1]d as demanded", cells+wider)
	overSCTP := 0
	for _, g := range matrix.SCTPGroups() {
		overSCTP += len(g.Rows)
	}
	testrig.WantInDocument(t, command, "`--network sctp` runs %d cells over SCTP", overSCTP)
}

// TestFiguresAreTheDraft holds the figures against the rules of the text around
// them, so that a slip of the pen in a cell is found.
func TestFiguresAreTheDraft(t *testing.T) {
	for _, f := range matrix.Figures {
		for line, i := range f.Rows {
			for column, r := range f.Columns {
				if got, want := i.Cells[column], byRule(i.RNIC, r); got != want {
					t.Errorf("figure %d, %v -> %v: %q, and by the text %q", f.Number, i.RNIC, r, got, want)
				}
				row := f.Row(line, column)
				if up := strings.HasPrefix(row.Demanded, "up "); up == (i.Cells[column] == "close") {
					t.Errorf("figure %d, %v -> %v: %q is demanded as %q",
						f.Number, i.RNIC, r, i.Cells[column], row.Demanded)
				}
			}
		}
	}
}

// byRule is what sections 5.1 to 5.4 come to.
func byRule(i, r matrix.RNIC) string {
	kinds := map[mpa.Kind]bool{i.Kind: true, r.Kind: true}
	one := map[bool]string{false: "0", true: "1"}
	switch {
	case kinds[mpa.KindRDMAC] && kinds[mpa.KindNonPermissive]:
		return "close"
	case i.Kind == mpa.KindRDMAC && r.Kind == mpa.KindPermissive && !r.Markers:
		return "N/A"
	case kinds[mpa.KindRDMAC]:
		return "V=0 M=1/1"
	}
	return "V=1 M=" + one[i.Markers] + "/" + one[r.Markers]
}

// TestDialects runs every dialect as initiator against every one as responder.
//
// Proves K01, K02, K03, K04, K05, K07, T01, T02, T03, T04, E02, E13, Q02, Q07, Q09, Q11: what
// comes up, who sends first, and what is refused.
func TestDialects(t *testing.T) { group(t, "dialects", 6*8) }

// TestKinds runs kinds of RNIC that do not start as in the figures.
//
// Proves N01, N04, N05, E13, T04: with revision 2, the Rtr frame, Start Keys, and wishes that
// a kind cannot have.
func TestKinds(t *testing.T) { group(t, "kinds", 15) }

// TestMarkersAndCRC runs the wishes of both ends for markers and CRCs.
//
// Proves F11, F14, Q04, T05: each direction's receiver decides on markers, either end on CRCs.
func TestMarkersAndCRC(t *testing.T) { group(t, "markers and CRC", 4*8) }

// TestRTRIndications runs every set offered against every set supported.
//
// Proves E08, E09, E10: one of both is sent first and seen by nobody, or a Terminate.
func TestRTRIndications(t *testing.T) { group(t, "RTR indications", 7*7) }

// TestDepths runs the rules of IRD and ORD.
//
// Proves E02, E03, E04, E05, E06, E07, E12, E14: raising, lowering, 0x3FFF, and too few resources.
func TestDepths(t *testing.T) { group(t, "IRD and ORD", 18) }

// TestPrivateData runs none, the most and too much of it.
//
// Proves E01, K07, Q08: it arrives, or is refused before it is sent.
func TestPrivateData(t *testing.T) { group(t, "private data", 4*6-1) }

// TestRejections runs rejections in every dialect.
//
// Proves E03, E05, E06, K07, Q10: private data and depths arrive, and TCP is left as it should.
func TestRejections(t *testing.T) { group(t, "rejections", 11) }

// TestFramesByHand runs Requests and Replies that our ends would not send.
//
// Proves E01, E02, E07, E08, E10, E13, Q02, Q05, Q06, Q07, Q08: they are taken or refused as
// they should.
func TestFramesByHand(t *testing.T) { group(t, "frames by hand", 20) }
