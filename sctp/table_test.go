package sctp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/sctp"
)

// A situation is a state of stream 0 and how it came about.
type situation struct {
	reach func(d *dialogue)
	next  uint16 // the peer's DDP-SSN
}

func reachOpen(d *dialogue) {
	d.connect()
	d.says(0, 17, `0000 0001`)
	d.hears(0, 17, `0000 0002`)
	d.told(sctp.EventEstablished, 0)
}

func reachPassive(d *dialogue) {
	d.hears(0, 17, `0000 0001`)
	d.told(sctp.EventRequest, 0)
}

// situations are all the states, and where it makes a difference, the ways to them.
var situations = map[string]situation{
	"Idle":             {func(*dialogue) {}, 0},
	"InitiateSent":     {func(d *dialogue) { d.connect(); d.says(0, 17, `0000 0001`) }, 0},
	"InitiateReceived": {reachPassive, 1},
	"Open, active":     {reachOpen, 1},
	"Open, passive": {func(d *dialogue) {
		reachPassive(d)
		d.accept(0)
		d.says(0, 17, `0000 0002`)
		d.acked(0)
	}, 1},
	"Open, failed": {func(d *dialogue) {
		reachOpen(d)
		d.hears(0, 99, `00`)
		d.told(sctp.EventFailed, 0)
	}, 1},
	"TerminateSent": {func(d *dialogue) {
		reachOpen(d)
		d.a.Close(d.now, 0)
		d.says(0, 17, `0001 0004`)
	}, 1},
	"TerminateSent, acknowledged": {func(d *dialogue) {
		reachOpen(d)
		d.a.Close(d.now, 0)
		d.says(0, 17, `0001 0004`)
		d.acked(0)
	}, 1},
	"TerminateSent, aborted": {func(d *dialogue) {
		reachOpen(d)
		d.a.Abort(d.now, 0)
		d.says(0, 17, `0001 0004`)
	}, 1},
	"canceled": {func(d *dialogue) {
		d.connect()
		d.says(0, 17, `0000 0001`)
		d.a.Close(d.now, 0)
	}, 0},
	"canceled, Terminate sent": {func(d *dialogue) {
		d.connect()
		d.says(0, 17, `0000 0001`)
		d.a.Close(d.now, 0)
		d.acked(0)
		d.says(0, 17, `0001 0004`)
	}, 0},
	"Draining": {func(d *dialogue) {
		reachPassive(d)
		must(d, d.a.Reject(d.now, 0, nil, 0, 0))
		d.says(0, 17, `0000 0003`)
	}, 0},
	"Dead": {func(d *dialogue) {
		d.hears(1, 17, `0000 0001`) // so that the association lasts
		d.told(sctp.EventRequest, 1)
		reachOpen(d)
		d.a.Close(d.now, 0)
		d.says(0, 17, `0001 0004`)
		d.hears(0, 99, `00`)
		d.told(sctp.EventEnded, 0)
	}, 1},
}

func must(d *dialogue, err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// inputs are the peer's messages: PPID and what follows the DDP-SSN, or the DDP-SSN's distance from the next.
var inputs = map[string]struct {
	ppid     uint32
	distance uint16
	text     string
}{
	"segment":                {16, 0, `aa`},
	"segment ahead":          {16, 1, `aa`},
	"segment again":          {16, 0xffff, `aa`},
	"segment too far":        {16, 0x8000, `aa`},
	"Initiate":               {17, 0, `0001`},
	"Enhanced Initiate":      {17, 0, `0005 0000 0000`},
	"Accept":                 {17, 0, `0002`},
	"Enhanced Accept":        {17, 0, `0006 0000 0000`},
	"Reject":                 {17, 0, `0003`},
	"Enhanced Reject":        {17, 0, `0007 0000 0000`},
	"Terminate":              {17, 0, `0004`},
	"Terminate ahead":        {17, 1, `0004`},
	"Initiate ahead":         {17, 1, `0001`},
	"function 0":             {17, 0, `0000`},
	"function 8":             {17, 0, `0008`},
	"function 0xffff":        {17, 0, `ffff`},
	"Terminate with data":    {17, 0, `0004 00`},
	"Initiate 513":           {17, 0, `0001 + 513 of 00`},
	"Enhanced Initiate 513":  {17, 0, `0005 + 513 of 00`},
	"Accept 513":             {17, 0, `0002 + 513 of 00`},
	"Enhanced Accept 3":      {17, 0, `0006 + 3 of 00`},
	"Enhanced Initiate 3":    {17, 0, `0005 + 3 of 00`},
	"Enhanced Reject 0":      {17, 0, `0007`},
	"Enhanced Reject 3":      {17, 0, `0007 6e6f 21`},
	"Enhanced Reject 513":    {17, 0, `0007 + 513 of 00`},
	"no function":            {17, 0, ``},
	"empty segment":          {16, whole, ``},
	"one byte":               {17, whole, `00`},
	"PPID 0":                 {0, 0, `0001`},
	"PPID 16 of other order": {0x10000000, 0, `aa`},
}

// whole marks an input without a DDP-SSN.
const whole = 0x7fff

// outcome lets one message arrive, and tells what came of it: state, messages, events.
func outcome(t *testing.T, s situation, ppid uint32, text string) string {
	d := newDialogue(t, sctp.Config{Active: true, Listening: true})
	s.reach(d)
	d.silent()
	dropped := d.a.Stats().Dropped
	d.hears(0, ppid, text)
	out := d.a.State(0).String()
	for e, ok := d.a.Event(); ok; e, ok = d.a.Event() {
		out += "; " + kinds[e.Kind]
		var v *sctp.Violation
		if errors.As(e.Err, &v) {
			out += fmt.Sprintf(" %s", ruleNames[v.Rule])
		}
	}
	for m, ok := d.a.Output(); ok; m, ok = d.a.Output() {
		out += fmt.Sprintf("; says %x", m.Data)
	}
	if d.a.Stats().Dropped > dropped {
		out += "; dropped"
	}
	if d.a.End().How == sctp.Abort {
		out += "; ABORT"
	}
	return out
}

var kinds = map[sctp.EventKind]string{
	sctp.EventRequest: "request", sctp.EventWithdrawn: "withdrawn", sctp.EventEstablished: "established",
	sctp.EventRefused: "refused",
	sctp.EventSegment: "segment", sctp.EventTerminate: "terminate", sctp.EventFailed: "failed",
	sctp.EventEnded: "ended",
}

var ruleNames = map[sctp.Rule]string{
	sctp.RulePPID: "PPID", sctp.RuleShort: "short", sctp.RuleFunction: "function", sctp.RuleTerminateData: "data",
	sctp.RulePrivateData:  "private data",
	sctp.RuleEnhancedData: "enhanced data", sctp.RuleSSN: "SSN", sctp.RuleSequence: "sequence", sctp.RuleKind: "kind",
}

// malformed are the inputs that are wrong in every state, by the rule that they break.
var malformed = map[string]string{
	"PPID":          "PPID 0, PPID 16 of other order",
	"SSN":           "segment again, segment too far",
	"short":         "no function, empty segment, one byte",
	"function":      "function 0, function 8, function 0xffff",
	"data":          "Terminate with data",
	"private data":  "Initiate 513, Enhanced Initiate 513, Accept 513, Enhanced Reject 513",
	"enhanced data": "Enhanced Accept 3, Enhanced Initiate 3",
}

// asking are those of them that are answered where there is no session, as they may be meant to begin one.
const asking = "no function, function 0, function 8, function 0xffff, Initiate 513, Enhanced Initiate 513, Enhanced Initiate 3"

// others are the inputs that are no answer and no end.
const others = "Initiate, Enhanced Initiate, Accept, Enhanced Accept, Reject, Enhanced Reject, Enhanced Reject 0, Enhanced Reject 3"

// table says what comes of every input: %s stands for the rule that is broken.
var table = map[string]struct {
	malformed string
	rest      map[string]string
}{
	"Idle": {"Idle; dropped", map[string]string{
		"InitiateReceived; request":        "Initiate, Enhanced Initiate",
		"Draining; says 00000004; dropped": "Initiate ahead",
		"Idle; dropped":                    "segment, segment ahead, Accept, Enhanced Accept, Reject, Enhanced Reject, Enhanced Reject 0, Enhanced Reject 3, Terminate, Terminate ahead",
	}},
	"InitiateSent": {"TerminateSent; refused %s", map[string]string{
		"Open; established":                          "Accept",
		"TerminateSent; refused kind; says 00010004": "Enhanced Accept",
		"Idle; refused":                              "Reject, Enhanced Reject, Enhanced Reject 0, Enhanced Reject 3, Terminate",
		"InitiateSent":                               "segment ahead, Terminate ahead, Initiate ahead",
		"TerminateSent; refused sequence":            "segment, Initiate, Enhanced Initiate",
	}},
	"InitiateReceived": {"Draining; withdrawn %s; says 00000004", map[string]string{
		"Draining; withdrawn; says 00000004": "Terminate",
		"Draining; withdrawn sequence; says 00000004": "segment, segment ahead, Terminate ahead, Initiate ahead, " +
			others,
	}},
	"Open, active": {"Open; failed %s", map[string]string{
		"Open; segment":         "segment, segment ahead",
		"Open; terminate":       "Terminate",
		"Open":                  "Terminate ahead, Initiate ahead",
		"Open; failed sequence": others,
	}},
	"Open, passive": {"Open; failed %s", map[string]string{
		"Open; segment":         "segment, segment ahead",
		"Open; terminate":       "Terminate",
		"Open":                  "Terminate ahead, Initiate ahead",
		"Open; failed sequence": others,
	}},
	"Open, failed": {"Open", map[string]string{
		"Open": "segment, segment ahead, Terminate, Terminate ahead, Initiate ahead, " + others,
	}},
	"TerminateSent": {"Dead; ended %s; ABORT", map[string]string{
		"TerminateSent; segment":      "segment, segment ahead",
		"Draining; terminate":         "Terminate",
		"TerminateSent":               "Terminate ahead, Initiate ahead",
		"Dead; ended sequence; ABORT": others,
	}},
	"TerminateSent, acknowledged": {"Dead; ended %s; ABORT", map[string]string{
		"TerminateSent; segment":      "segment, segment ahead",
		"Idle; terminate; ended":      "Terminate",
		"TerminateSent":               "Terminate ahead, Initiate ahead",
		"Dead; ended sequence; ABORT": others,
	}},
	"TerminateSent, aborted": {"Dead; ended %s; ABORT", map[string]string{
		"TerminateSent":               "Terminate ahead, Initiate ahead",
		"Idle; ended; ABORT":          "segment, segment ahead",
		"Draining":                    "Terminate",
		"Dead; ended sequence; ABORT": others,
	}},
	"canceled": {"Dead; ABORT", map[string]string{
		"TerminateSent; says 00010004": "Accept, Enhanced Accept",
		"Idle":                         "Reject, Enhanced Reject, Enhanced Reject 0, Enhanced Reject 3, Terminate",
		"TerminateSent":                "Terminate ahead, Initiate ahead",
		"Idle; ABORT":                  "segment ahead",
		"Dead; ABORT":                  "segment, Initiate, Enhanced Initiate",
	}},
	"canceled, Terminate sent": {"Dead; ABORT", map[string]string{
		"TerminateSent": "Accept, Enhanced Accept, Terminate ahead, Initiate ahead",
		"Idle; ABORT":   "segment ahead",
		"Draining":      "Reject, Enhanced Reject, Enhanced Reject 0, Enhanced Reject 3, Terminate",
		"Dead; ABORT":   "segment, Initiate, Enhanced Initiate",
	}},
	"Draining": {"Draining; dropped", map[string]string{
		"InitiateReceived; request": "Initiate, Enhanced Initiate",
		"Draining; dropped":         "segment, segment ahead, Initiate ahead, Accept, Enhanced Accept, Reject, Enhanced Reject, Enhanced Reject 0, Enhanced Reject 3, Terminate, Terminate ahead",
	}},
	"Dead": {"Dead; dropped", map[string]string{
		"Dead; dropped": "segment, segment ahead, Terminate, Terminate ahead, Initiate ahead, " + others,
	}},
}

// TestTable lets every message arrive in every state.
//
// Proves C01, C02, C04, C09: what is in none of the legal sequences ends the session, and nothing
// else does.
func TestTable(t *testing.T) {
	for name, s := range situations {
		row := table[name]
		want := make(map[string]string)
		for rule, names := range malformed {
			note(t, want, names, strings.ReplaceAll(row.malformed, "%s", rule))
		}
		if name == "Idle" || name == "Draining" {
			for in := range strings.SplitSeq(asking, ", ") {
				want[in] = "Draining; says 00000004; dropped"
			}
		}
		for out, names := range row.rest {
			note(t, want, names, out)
		}
		for in, i := range inputs {
			text := i.text
			if i.distance != whole {
				text = fmt.Sprintf("%04x %s", s.next+i.distance, i.text)
			}
			if got := outcome(t, s, i.ppid, text); got != want[in] {
				t.Errorf("%s: %s: got %q, want %q", name, in, got, want[in])
			}
		}
	}
}

func note(t *testing.T, want map[string]string, names, out string) {
	for name := range strings.SplitSeq(names, ", ") {
		if _, known := inputs[name]; !known || want[name] != "" {
			t.Fatalf("%q is no input, or is there twice", name)
		}
		want[name] = out
	}
}
