package iwarp_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestJSON writes what a monitor would keep, and reads the counters back.
func TestJSON(t *testing.T) {
	ini, res := connect(t)
	works(t, ini, res)
	writeNowhere(ini)
	_ = res.wantEnd()
	before := res.rnic.Stats()
	text, err := json.Marshal(before)
	must(t, err)
	var after iwarp.Stats
	must(t, json.Unmarshal(text, &after))
	if !reflect.DeepEqual(after.Received, before.Received) || !reflect.DeepEqual(after.TerminatesSent, before.TerminatesSent) || len(after.TerminatesSent) != 1 {
		t.Errorf("read back %+v, wrote %+v", after, before)
	}
	attr := res.Query()
	text, err = json.Marshal(attr)
	must(t, err)
	var back struct{ State iwarp.State }
	if must(t, json.Unmarshal(text, &back)); back.State != attr.State {
		t.Errorf("state %v, wrote %v", back.State, attr.State)
	}
	for want, v := range map[string]any{
		`"Failed":{}`: before, `"State":"Error"`: attr, `"Versions":["0","1"]`: res.rnic.Query(),
		`"CRC":"unwanted"`: iwarp.RNICAttr{CRC: iwarp.CRCUnwanted},
		`"Status":"` + iwarp.StatusFlushed.String() + `","Op":"Recv"`:                  iwarp.WC{Status: iwarp.StatusFlushed, Op: iwarp.OpRecv},
		`{"Kind":"CQ overflow","Err":"` + iwarp.ErrCQOverflow.Error() + `","Count":1}`: iwarp.Event{Kind: iwarp.EventCQOverflow, Err: iwarp.ErrCQOverflow, Count: 1},
	} {
		text, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s (%v), want %s in it", text, err, want)
		}
	}
	if err := json.Unmarshal([]byte(`"no such state"`), &back.State); err == nil {
		t.Error("an unknown state")
	}
}

// readsBack reads the names of all values from 0 to the last, as they were written.
func readsBack[T interface {
	~uint8
	encoding.TextMarshaler
}](t *testing.T, last T) {
	t.Helper()
	for v := range last + 1 {
		var got T
		text, err := v.MarshalText()
		must(t, err)
		if err := any(&got).(encoding.TextUnmarshaler).UnmarshalText(text); err != nil || got != v {
			t.Errorf("%s is read back as %v: %v", text, got, err)
		}
	}
}

// TestNamesReadBack has each name mean its value, from the first to the last.
func TestNamesReadBack(t *testing.T) {
	readsBack(t, iwarp.StateClosed)
	readsBack(t, iwarp.StatusRegisterFailed)
	readsBack(t, iwarp.OpFastRegister)
	readsBack(t, iwarp.Version1)
	readsBack(t, iwarp.CRCUnwanted)
}

// TestNegotiatedJSON: what was agreed on has words for roles and RTR indications, and no field for private data that is not there.
func TestNegotiatedJSON(t *testing.T) {
	n := iwarp.Negotiated{Negotiated: mpa.Negotiated{Role: mpa.RoleResponder, RTR: mpa.RTRWrite | mpa.RTRRead, IRD: 3}}
	var got map[string]any
	for _, private := range []string{"", "hi"} {
		n.PrivateData = []byte(private)
		text, err := json.Marshal(n)
		must(t, err)
		got = nil
		must(t, json.Unmarshal(text, &got))
		if got["Role"] != "Responder" || got["RTR"] != "write|read" || got["Opener"] != "none" || got["IRD"] != 3.0 || got["CRC"] != false {
			t.Errorf("%s", text)
		}
		if _, ok := got["PrivateData"]; ok != (private != "") || got["FallbackReason"] != nil {
			t.Errorf("%s", text)
		}
	}
	n.FallbackReason = errors.New("closed")
	text, err := json.Marshal(n)
	must(t, err)
	if must(t, json.Unmarshal(text, &got)); got["FallbackReason"] != "closed" || got["PrivateData"] != "aGk=" {
		t.Errorf("%s", text)
	}
}
