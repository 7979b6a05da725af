package sctp_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestTurns: streams take turns in sending, each message of one in its order, and one that has nothing to say does not
// lose its next turn. What is left does not outlive the association.
func TestTurns(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	for id := range uint16(3) {
		d.hears(id, 17, `0000 0001`)
		d.told(sctp.EventRequest, id)
		d.accept(id)
		d.says(id, 17, `0000 0002`)
	}
	send := func(id uint16, texts ...string) {
		t.Helper()
		for _, text := range texts {
			testrig.Must(t, d.a.Send(id, []byte(text)))
		}
	}
	send(0, "A", "B", "C", "D")
	send(1, "A", "B")
	d.says(0, 16, `0001 41`)
	send(2, "A")
	d.says(1, 16, `0001 41`)
	d.says(0, 16, `0002 42`)
	d.says(2, 16, `0001 41`)
	d.says(1, 16, `0002 42`)
	d.says(0, 16, `0003 43`)
	send(1, "C")
	d.says(0, 16, `0004 44`)
	d.says(1, 16, `0003 43`)
	d.silent()
	send(0, "E", "F")
	send(2, "B")
	d.says(0, 16, `0005 45`)
	d.a.Lost(nil)
	if m, ok := d.a.Output(); ok {
		t.Errorf("said %+v", m)
	}
}
