package iwarp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// TestJSON writes what a monitor would keep, and reads the counters back.
func TestJSON(t *testing.T) {
	ini, res := rig.Connect(t)
	rig.Works(t, ini, res)
	rig.WriteNowhere(ini)
	_ = res.WantEnd()
	before := res.RNIC.Stats()
	text, err := json.Marshal(before)
	rig.Must(t, err)
	var after iwarp.Stats
	rig.Must(t, json.Unmarshal(text, &after))
	if !reflect.DeepEqual(after.Received, before.Received) ||
		!reflect.DeepEqual(after.TerminatesSent, before.TerminatesSent) || len(after.TerminatesSent) != 1 {
		t.Errorf("read back %+v, wrote %+v", after, before)
	}
	attr := res.Query()
	text, err = json.Marshal(attr)
	rig.Must(t, err)
	var back struct{ State string }
	if rig.Must(t, json.Unmarshal(text, &back)); back.State != attr.State.String() {
		t.Errorf("state %v, wrote %v", back.State, attr.State)
	}
	for want, v := range map[string]any{
		`"Failed":{}`: before, `"State":"Error"`: attr, `"Versions":["0","1"]`: res.RNIC.Query(),
		`"CRC":"unwanted"`: iwarp.RNICAttr{CRC: iwarp.CRCUnwanted},
		`"Status":"` + iwarp.StatusFlushed.String() +
			`","Op":"Recv"`: iwarp.WC{Status: iwarp.StatusFlushed, Op: iwarp.OpRecv},
		`{"Kind":"CQ overflow","Err":"` + iwarp.ErrCQOverflow.Error() +
			`","Count":1}`: iwarp.Event{Kind: iwarp.EventCQOverflow, Err: iwarp.ErrCQOverflow, Count: 1},
	} {
		text, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s (%v), want %s in it", text, err, want)
		}
	}
}

// TestNegotiatedJSON: what was agreed on has words for roles and RTR indications, and no field for private data that is
// not there.
func TestNegotiatedJSON(t *testing.T) {
	n := iwarp.Negotiated{Negotiated: mpa.Negotiated{Role: mpa.RoleResponder, RTR: mpa.RTRWrite | mpa.RTRRead, IRD: 3}}
	var got map[string]any
	for _, private := range []string{"", "hi"} {
		n.PrivateData = []byte(private)
		text, err := json.Marshal(n)
		rig.Must(t, err)
		got = nil
		rig.Must(t, json.Unmarshal(text, &got))
		if got["Role"] != "Responder" || got["RTR"] != "write|read" || got["Opener"] != "none" ||
			got["IRD"] != 3.0 || got["CRC"] != false {
			t.Errorf("%s", text)
		}
		if _, ok := got["PrivateData"]; ok != (private != "") || got["FallbackReason"] != nil {
			t.Errorf("%s", text)
		}
	}
	n.FallbackReason = errors.New("closed")
	text, err := json.Marshal(n)
	rig.Must(t, err)
	if rig.Must(t, json.Unmarshal(text, &got)); got["FallbackReason"] != "closed" || got["PrivateData"] != "aGk=" {
		t.Errorf("%s", text)
	}
}

// TestNoMemoryInText prints an MR in all ways that there are: the memory is in none.
func TestNoMemoryInText(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	mr, err := e.PD.Register([]byte{251, 252, 253, 254}, iwarp.LocalWrite)
	rig.Must(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%x", "%s"} {
		for _, v := range []any{mr, *mr, mr.Slice(0, 4), []iwarp.MR{*mr}} {
			text := strings.ToLower(fmt.Sprintf(verb, v))
			// One byte alone may be in an address.
			for _, memory := range []string{"251 252 253", "251, 252, 253", "fb, 0xfc, 0xfd", "fbfcfd", "fb fc fd"} {
				if strings.Contains(text, memory) {
					t.Errorf("%s of a %T: %s", verb, v, text)
				}
			}
		}
	}
}

// TestTextOfWork prints a PD, and completions.
func TestTextOfWork(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	res.MR(8, 0)
	if got, want := res.PD.String(), "PD 1 (1 QP, 0 SRQs, 1 MR)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	res.MustPostRecv(7, res.MR(8, iwarp.LocalWrite).Slice(0, 8))
	res.MustPostRecv(8)
	rig.Must(t, ini.Send(rig.Within(t), ini.MR(8, 0).Slice(0, 8)))
	if got, want := res.WantReceived(7, iwarp.StatusSuccess).String(),
		"Recv (work request 7) on QP 1: success, 8 bytes"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	_ = ini.Close()
	wc := res.WantReceived(8, iwarp.StatusFlushed)
	if got, want := fmt.Sprint(wc), "Recv (work request 8) on QP 1: flushed: the peer closed the connection in order"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (iwarp.WC{ID: 3, Op: iwarp.OpRead, Status: iwarp.StatusLocalAccess}).String(),
		"Read (work request 3): "+iwarp.StatusLocalAccess.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestOpErrorText composes the texts of errors in errors: each names its part once.
func TestOpErrorText(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4791}
	refused := os.NewSyscallError("connect", errors.New("connection refused"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{&iwarp.OpError{Op: "dial", To: "tcp 192.0.2.1:4791",
			Err: &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: refused}},
			"iwarp: dial tcp 192.0.2.1:4791: connect: connection refused"},
		{&iwarp.OpError{Op: "dial", To: "tcp host:1",
			Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "host"}}},
			"iwarp: dial tcp host:1: lookup host: no such host"},
		{&iwarp.OpError{Op: "accept", Addr: addr, Err: &net.OpError{Op: "read", Net: "tcp", Addr: addr, Err: refused}},
			"iwarp: accept 192.0.2.1:4791: read tcp 192.0.2.1:4791: connect: connection refused"},
		{&iwarp.OpError{Op: "dial", To: "tcp host:1", Err: &iwarp.OpError{Op: "create QP", Err: iwarp.ErrInvalid}},
			"iwarp: dial tcp host:1: create QP: invalid argument"},
		{&iwarp.OpError{Op: "send", Err: &iwarp.WCError{Op: iwarp.OpSend, ID: 7, Status: iwarp.StatusFlushed,
			Cause: &iwarp.ConnectionError{Err: refused}}},
			"iwarp: send: Send (work request 7): " + iwarp.StatusFlushed.String() + ": connect: connection refused"},
		{&iwarp.OpError{Op: "dial", Err: errors.New("dial is part of this text")},
			"iwarp: dial: dial is part of this text"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestOnlyTimeoutsAreTimeouts asks errors whether they are timeouts, and whether they are something else.
func TestOnlyTimeoutsAreTimeouts(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		late bool
	}{
		"OpError":               {&iwarp.OpError{Op: "send", Err: iwarp.ErrInvalid}, false},
		"OpError, late":         {&iwarp.OpError{Op: "send", Err: context.DeadlineExceeded}, true},
		"ConnectionError":       {&iwarp.ConnectionError{Err: iwarp.ErrConnectionLost}, false},
		"ConnectionError, late": {&iwarp.ConnectionError{Err: engine.ErrTimeout}, true},
		"ConnectionError, TCP's end": {&iwarp.ConnectionError{Err: &net.OpError{Op: "read",
			Err: os.ErrDeadlineExceeded}}, true},
	} {
		var n net.Error
		if !errors.As(c.err, &n) || n.Timeout() != c.late || errors.Is(c.err, os.ErrDeadlineExceeded) != c.late {
			t.Errorf("%s: whether it is a timeout should be %t", what, c.late)
		}
		if errors.Is(c.err, io.EOF) {
			t.Errorf("%s is taken for another error", what)
		}
	}
}

// TestBrief: within an error that names what failed itself, one of this package names neither that nor the package.
func TestBrief(t *testing.T) {
	refused := os.NewSyscallError("connect", errors.New("connection refused"))
	dialed := &iwarp.OpError{Op: "dial", To: "tcp host:1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: refused}}
	for _, c := range []struct {
		op   string
		err  error
		want string
		ours bool
	}{
		{"dial", dialed, "connect: connection refused", true},
		{"read", dialed, "dial tcp host:1: connect: connection refused", true},
		{"read", &iwarp.ConnectionError{Err: refused}, "connect: connection refused", true},
		{"dial", refused, "", false},
		{"dial", errors.Join(dialed), "", false},
	} {
		if got, ours := iwarp.Brief(c.op, c.err); got != c.want || ours != c.ours {
			t.Errorf("%s, %v: got %q, %v", c.op, c.err, got, ours)
		}
	}
}
