package iwarp

import (
	"log/slog"
	"testing"
)

// TestJournalRoom: a journal has room for so many records, and for a few more that are no FPDUs; it counts the others.
func TestJournalRoom(t *testing.T) {
	qp := &QP{rnic: NewRNIC(RNICConfig{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})}
	j := &journal{of: qp}
	for range maxJournal + 5 {
		j.add(LevelFrame, "an FPDU")
	}
	if len(j.records) != maxJournal || j.dropped != 5 {
		t.Errorf("%d records, %d dropped", len(j.records), j.dropped)
	}
	for range journalRest + 1 {
		j.add(levelConnection, "something else")
	}
	if len(j.records) != maxJournal+journalRest || j.dropped != 6 {
		t.Errorf("%d records with others, %d dropped", len(j.records), j.dropped)
	}
}
