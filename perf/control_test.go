package perf

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestToldOfWrongData: what a responder says of wrong data is a CorruptionError, also of one that does not say which data; and
// nothing else is.
func TestToldOfWrongData(t *testing.T) {
	for text, side := range map[string]string{
		`{"error":"it is wrong","corrupt":true,"wrong":{"Op":"Write","Side":"responder","Offset":7}}`: "responder",
		`{"error":"it is wrong","corrupt":true}`:                                                      "responder",
		`{"error":"it is not there"}`:                                                                 "",
		`{"error":"it is not there","wrong":{"Op":"Write","Side":"nobody"}}`:                          "",
	} {
		var a answer
		testrig.Must(t, json.Unmarshal([]byte(text), &a))
		var wrong *CorruptionError
		if found := errors.As(a.told(), &wrong); found != (side != "") || found && wrong.Side != side {
			t.Errorf("%s: %v", text, wrong)
		}
	}
	if errors.As(&PeerError{Corrupt: true}, new(*CorruptionError)) {
		t.Error("a PeerError of another's making has a CorruptionError that is nil")
	}
}
