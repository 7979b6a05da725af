package perf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestToldOfWrongData: what a responder says of wrong data is a CorruptionError, also of one that does not say which
// data; and nothing else is.
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

// TestStrangeAnswers: what is no answer to the first request is told of as the responder's, before anything is done
// with it.
func TestStrangeAnswers(t *testing.T) {
	for text, want := range map[string]string{
		`hello`:                 "what the responder has sent on the control connection is no message of iwarp perf: invalid character",
		`{{`:                    "what the responder has sent on the control connection is no message of iwarp perf: invalid character",
		`[]`:                    "is no message of iwarp perf",
		`null`:                  "is no message of iwarp perf: it is null",
		`{}`:                    "plain TCP at port 0, which is none",
		`{"tcp_port":-1}`:       "plain TCP at port -1",
		`{"tcp_port":65536}`:    "plain TCP at port 65536",
		`{"error":"not today"}`: "the responder says: not today",
	} {
		synctest.Test(t, func(t *testing.T) {
			d, peer := answers(t)
			go func() {
				if _, err := peer.next(t.Context()); err == nil {
					n := copy(peer.out.Bytes(), text)
					_ = peer.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: []iwarp.SGE{peer.out.Slice(0, n)}})
				}
			}()
			if err := d.open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", text, err, want)
			}
		})
	}
}
