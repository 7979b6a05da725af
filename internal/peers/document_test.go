package peers_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// documented returns the cells of the rows of docs/dialects.md's table of peers that have a
// preset, in order.
func documented(t *testing.T) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/dialects.md")
	testrig.Must(t, err)
	_, table, _ := strings.Cut(string(page), "| peer | as Initiator | as Responder | RTR | markers | falls back | preset |\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == 7 && strings.HasPrefix(cells[6], "`") {
			rows = append(rows, cells)
		}
	}
	return rows
}

// TestDocument holds the table of peers in docs/dialects.md to the one here.
func TestDocument(t *testing.T) {
	rows := documented(t)
	if len(rows) != len(peers.All()) {
		t.Fatalf("%d rows, %d peers", len(rows), len(peers.All()))
	}
	for i, p := range peers.All() {
		initiator, responder, rtr, markers, fallsBack := rows[i][1], rows[i][2], rows[i][3], rows[i][4], rows[i][5]
		for _, c := range []struct {
			cell    string
			text    string
			present bool
		}{
			{rows[i][6], "`" + p.Name + "`", true},
			{initiator[:min(7, len(initiator))], map[mpa.Dialect]string{mpa.DialectRFC5044: "rfc5044",
				mpa.DialectRFC6581: "rfc6581"}[p.Advice.Dialects[0]], true},
			{initiator, "A=1", p.PeerToPeer && strings.Contains(initiator, "A=")},
			{responder, "RST", p.BadRevision == peers.Resets && strings.Contains(responder, "RST")},
			{responder, "A=1 demanded", p.NotPeerToPeer != peers.Tolerates},
			{rtr, "-", p.Highest < 2 && !slices.Contains(p.Advice.Dialects, mpa.DialectRFC6581)},
			{markers, "not known", !p.Knows("Markers")},
			{markers, "if the peer asks", p.Knows("Markers") && p.Markers == peers.Tolerates},
			{markers, "rejected", p.Knows("Markers") && p.Markers == peers.Rejects},
			{fallsBack, "not known", !p.Knows("FallsBack")},
			{fallsBack, "on RST", p.Knows("FallsBack") && p.FallsBack},
		} {
			if strings.Contains(c.cell, c.text) != c.present {
				t.Errorf("%s: %q in %q: want %v", p.Name, c.text, c.cell, c.present)
			}
		}
	}
}
