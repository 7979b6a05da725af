package mpa_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// seeds are what both ends of every dialect send, one after the other.
func seeds(f *testing.F, role mpa.Role) (all [][]byte) {
	f.Helper()
	for _, p := range plays {
		if p.role != role {
			continue
		}
		var b []byte
		for _, a := range p.acts {
			b = append(b, testrig.Bytes(f, a.frame)...)
		}
		all = append(all, append(b, "first FPDU"...))
	}
	for _, name := range vectors(f, "siw-re") {
		all = append(all, vector(f, name))
	}
	return all
}

// anyConfig makes a responder's configuration of a number.
func anyConfig(n byte) mpa.ResponderConfig {
	cfg := mpa.ResponderConfig{Kind: mpa.Kind(n & 3), Messages: n&4 != 0}
	if n&8 != 0 {
		cfg.Dialects = mpa.Dialects()
	}
	return cfg
}

// FuzzResponder gives any bytes to a Responder of any configuration, whole and in
// steps, and answers.
//
// Proves Q13, E14, K03, T02: any split gives the same result, no byte beyond the startup
// frames is taken,
// and every Request that is taken can be answered in a frame that an Initiator reads.
func FuzzResponder(f *testing.F) {
	for n, b := range seeds(f, mpa.RoleResponder) {
		f.Add(b, byte(1), byte(n))
		f.Add(b, byte(7), byte(12))
	}
	f.Add(append(frame(request(2, "ff ff ff ff")), make([]byte, 600)...), byte(100), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, step, config byte) {
		one, parts := mpa.NewResponder(anyConfig(config)), mpa.NewResponder(anyConfig(config))
		one.Start(epoch)
		parts.Start(epoch)
		sent := sameInput(t, one, parts, b, int(step))
		q := one.Request()
		if q == nil {
			return
		}
		if q.Frame != nil && !bytes.HasPrefix(b, frame(q.Frame.Fields())) {
			t.Errorf("Request % x of % x", []byte(q.Frame), b)
		}
		if n := one.Negotiated(); n.Enhanced && n.IRD > 9 || n.ORD > 4 {
			t.Errorf("IRD %d, ORD %d", n.IRD, n.ORD)
		}
		readsAnswer(t, q, config&4 != 0, sent)
	})
}

// readsAnswer gives what a Responder sends to the Initiator that its Request could be
// from.
func readsAnswer(t *testing.T, q *mpa.Request, messages bool, sent []byte) {
	t.Helper()
	o := mpa.Offer{Dialect: q.Dialect, ClientServer: !q.PeerToPeer}
	o.Messages = messages && q.Dialect == mpa.DialectStartKey && !bytes.HasPrefix(sent, []byte(mpa.KeyStart))
	i := clone(t, o)
	n, err := i.Input(epoch, sent)
	if n != len(sent) || err != nil || i.Done() == (i.Want() > 0) {
		t.Errorf("% x: %d, %v", sent, n, err)
	}
}

// FuzzInitiator gives any bytes to an Initiator of any dialect and kind, whole and in
// steps.
//
// Proves Q13, K03: any split gives the same result, and no byte beyond the startup frames is
// taken.
func FuzzInitiator(f *testing.F) {
	for n, b := range seeds(f, mpa.RoleInitiator) {
		for d := range 6 {
			f.Add(b, byte(n), byte(d), byte(n))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, step, dialect, config byte) {
		o := mpa.Offer{
			Dialect: mpa.Dialect(dialect % 6), Kind: mpa.Kind(config & 3), Messages: config&4 != 0,
			ClientServer: config&8 != 0,
			IRD:          2, ORD: 2, MaxIRD: 4,
		}
		if _, err := mpa.NewInitiator(o); err != nil {
			return
		}
		one, parts := clone(t, o), clone(t, o)
		sameInput(t, one, parts, b, int(step))
		if diff := cmp.Diff(one.Rejected(), parts.Rejected()); diff != "" {
			t.Error(diff)
		}
		if n := one.Negotiated(); one.Done() && (n.IRD > 4 || n.ORD > 2) {
			t.Errorf("IRD %d, ORD %d", n.IRD, n.ORD)
		}
	})
}

// feed gives bytes to a machine in steps, as they are wanted; a Responder accepts.
func feed(m machine, b []byte, step int) (taken int, sent []byte, err error) {
	r, _ := m.(*mpa.Responder)
	answered := false
	for err == nil {
		if r != nil && r.Request() != nil && !answered {
			answer, failed := r.Accept(epoch, mpa.Answer{IRD: 3, ORD: 4, MaxIRD: 9})
			answered, sent, err = true, append(sent, answer...), failed
			continue
		}
		if taken == len(b) || m.Want() == 0 {
			break
		}
		var n int
		n, err = m.Input(epoch, b[taken:min(taken+step, len(b))])
		taken, sent = taken+n, append(sent, m.Output()...)
	}
	return taken, sent, err
}

// sameInput gives the bytes to two machines, to the second one in steps, and
// compares what comes of it.
func sameInput(t *testing.T, one, parts machine, b []byte, step int) (sent []byte) {
	t.Helper()
	n, sent, err := feed(one, b, max(len(b), 1))
	taken, again, partsErr := feed(parts, b, max(step, 1))
	if n != taken || errText(err) != errText(partsErr) || !bytes.Equal(sent, again) {
		t.Errorf("whole: %d, %v, sent % x; in steps: %d, %v, sent % x", n, err, sent, taken, partsErr, again)
	}
	if n > 2*(mpa.StartupHeaderLen+mpa.MaxPrivateData) {
		t.Errorf("took %d bytes", n)
	}
	var e *mpa.StartupError
	if err != nil && (!errors.As(err, &e) || e.Err.Hint == "" || e.Err.Code != mpa.CodeStartupFrame) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(one.Negotiated(), parts.Negotiated()); diff != "" {
		t.Error(diff)
	}
	return sent
}

// FuzzParseStartKey gives any bytes to the codec of the Start Key.
func FuzzParseStartKey(f *testing.F) {
	f.Add(testrig.Bytes(f, startKeyMC))
	f.Add([]byte("MPA ident frame"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := mpa.ParseStartKey(b)
		if (err == nil) != (len(b) >= mpa.StartKeyLen) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		fields := mpa.StartKeyFields{Key: k.Key(), M: k.M(), C: k.C(), Res: k.Res(), Rev: k.Rev()}
		if got := mpa.AppendStartKey(nil, &fields); !bytes.HasPrefix(b, got) ||
			strings.ContainsAny(k.String(), "\x00\n") {
			t.Errorf("% x became % x, %q", b, got, k)
		}
	})
}

// FuzzParsePrivateDataMessage gives any bytes to the codec of private data messages.
func FuzzParsePrivateDataMessage(f *testing.F) {
	f.Add(testrig.Bytes(f, helloMessage))
	f.Add(testrig.Bytes(f, emptyMessage))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := mpa.ParsePrivateDataMessage(b)
		var e *mpa.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Code != mpa.CodeStartupFrame):
			t.Error(err)
		case err == nil && !bytes.HasPrefix(b, mpa.AppendPrivateDataMessage(nil, m.PrivateData(), -1)):
			t.Errorf("% x became % x", b, m)
		}
	})
}

// FuzzDescribeStartup describes any bytes in one line.
func FuzzDescribeStartup(f *testing.F) {
	for _, role := range []mpa.Role{mpa.RoleInitiator, mpa.RoleResponder} {
		for _, b := range seeds(f, role) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		line := mpa.DescribeStartup(b)
		if line == "" || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
			t.Errorf("% x: %q", b, line)
		}
		found, rest, ok := mpa.CutStartup(b)
		if ok && len(rest) == 0 != (line == found.String()) || !ok && (found != nil || len(rest) != len(b)) ||
			!bytes.HasSuffix(b, rest) {
			t.Errorf("% x: %v and % x, %v", b, found, rest, ok)
		}
	})
}

// Proves K01, T02, Q01: what an endpoint says of its startup frames.
func TestDescribeStartup(t *testing.T) {
	for hex, want := range map[string]string{
		startKeyMC:                "MPA ident frame M C rev 0",
		rtrFrame:                  "MPA ID RtR Frame C rev 1 pd 0",
		rtrRequest:                "MPA ID Req Frame C S rev 1 pd 2",
		revision0Reply:            "MPA ID Rep Frame M C rev 0 pd 2",
		helloMessage:              "private data message pd 5",
		emptyMessage:              "private data message pd 0",
		"":                        "0 bytes that are no startup frame",
		"00 05 61":                "3 bytes that are no startup frame",
		rtrFrame + "\n00":         "21 bytes that are no startup frame",
		"00":                      "1 byte that is no startup frame",
		startKeyMC + "\n00":       "17 bytes that are no startup frame",
		strings.Repeat("aa ", 16): "16 bytes that are no startup frame",
	} {
		hex = strings.TrimSpace(hex)
		if got := mpa.DescribeStartup(unhex(t, hex)); got != want {
			t.Errorf("%s: %q want %q", hex, got, want)
		}
	}
}
