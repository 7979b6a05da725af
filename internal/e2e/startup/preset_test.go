package startup

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/mpa"
)

// TestExtensionsUnknown asks peers that do not know RFC 7306, as their scripts do not.
//
// Proves A42: their Terminate is surfaced, with what to do.
func TestExtensionsUnknown(t *testing.T) {
	for _, name := range []string{"siw", "cxgb4"} {
		e, err := respondAs(t, peerRow(t, name)).dial(t, iwarp.Dialer{Preset: lookup(t, name)})
		rig.Must(t, err)
		_, err = e.FetchAdd(rig.Within(t), iwarp.Remote{STag: 5}, 0)
		if !errors.Is(err, iwarp.ErrClosed) || !rig.Contains(err,
			"does not seem to know the Atomic Operations and Immediate Data of RFC 7306") {
			t.Errorf("%s: %v", name, err)
		}
		if end := e.WantEnd(); !rig.Contains(end, "RFC 7306") {
			t.Errorf("%s: ended: %v", name, end)
		}
	}
}

// agreed is what comes of a connection with a peer.
type agreed struct {
	name     string
	dialect  mpa.Dialect
	rtr      mpa.RTR
	ird, ord mpa.Depth
}

func (a agreed) want(t *testing.T, n iwarp.Negotiated) {
	t.Helper()
	if n.Dialect != a.dialect || n.RTR != a.rtr || n.IRD != a.ird || n.ORD != a.ord || n.FellBack || !n.CRC {
		t.Errorf("negotiated %+v", n)
	}
}

// TestPresetDials has us, as Initiator with its preset, connect to each peer: it
// comes up at once, as the preset has it, and a message goes both ways.
//
// Proves E02, E07, E09, E12.
func TestPresetDials(t *testing.T) {
	for _, c := range []agreed{
		{"siw", mpa.DialectRFC6581, mpa.RTRWrite, 32, 32},
		{"cxgb4", mpa.DialectRFC6581, mpa.RTRRead, 32, 32},
		{"freebsd", mpa.DialectRFC5044, 0, 8, 8},
		{"irdma", mpa.DialectRFC6581, mpa.RTRRead, 32, 32},
		{"qedr", mpa.DialectRFC6581, mpa.RTRWrite, 32, 32},
		{"windows-v1", mpa.DialectRFC5044, 0, 32, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := respondAs(t, peerRow(t, c.name)).talks(t, iwarp.Dialer{Preset: lookup(t, c.name)})
			c.want(t, n)
		})
	}
}

// TestPresetAccepts has each peer connect to us as it does, and a message go both ways.
//
// Proves E02, E08, E09, E12.
func TestPresetAccepts(t *testing.T) {
	for _, c := range []agreed{
		{"siw", mpa.DialectRFC6581, 0, 128, 32},
		{"cxgb4", mpa.DialectRFC6581, mpa.RTRRead, 32, 32},
		{"freebsd", mpa.DialectRFC5044, 0, 8, 8},
		{"irdma", mpa.DialectRFC6581, mpa.RTRWrite | mpa.RTRRead, 32, 32},
		{"qedr", mpa.DialectRFC6581, mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead, 32, 32},
		{"windows-v1", mpa.DialectRFC5044, 0, 32, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := accepting{listen: iwarp.ListenConfig{Preset: lookup(t, c.name)}}
			n, err := a.from(t, peerRow(t, c.name), peersim.Consumer{})
			rig.Must(t, err)
			c.want(t, n)
		})
	}
}

// TestPeersWithoutPreset has each peer meet our defaults, which offer and take all three kinds
// of RTR indication, in both roles. One that resets revision 2 gets a Write, which it has not
// agreed on, and never a Send. (Windows finds no depths in our private data.)
//
// Proves E09, E15, E16.
func TestPeersWithoutPreset(t *testing.T) {
	const send, write, read = mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead
	for _, c := range []struct {
		name                  string
		offered, sent, opener mpa.RTR // as Initiators
		peerOffered, weAnswer mpa.RTR // as Responders
	}{
		{"siw", send | write | read, write, 0, 0, 0},
		{"cxgb4", send | write | read, read, 0, read, read},
		{"freebsd", 0, 0, write, 0, 0},
		{"irdma", send | write | read, read, 0, write | read, write | read},
		{"qedr", send | write | read, write, 0, send | write | read, send | write | read},
	} {
		n := respondAs(t, peerRow(t, c.name)).talks(t, iwarp.Dialer{})
		if n.OfferedRTR != c.offered || n.RTR != c.sent || n.Opener != c.opener {
			t.Errorf("%s as Responder: %+v", c.name, n)
		}
		n, err := accepting{}.from(t, peerRow(t, c.name), peersim.Consumer{})
		if err != nil || n.OfferedRTR != c.peerOffered || n.AnsweredRTR != c.weAnswer {
			t.Errorf("%s as Initiator: %v, %+v", c.name, err, n)
		}
	}
}

// TestPresetDepths has depths in private data, in both roles: the consumers' own comes
// through beside them.
func TestPresetDepths(t *testing.T) {
	p, c := lookup(t, "windows-v1"), peersim.Consumer{IRD: 3, ORD: 5, PrivateData: []byte("theirs")}
	ours := mpa.Offer{IRD: 6, ORD: 4, PrivateData: []byte("ours")}
	check := func(n iwarp.Negotiated, err error) {
		t.Helper()
		if err != nil || n.PeerIRD != 3 || n.IRD != 6 || n.ORD != 3 || string(n.PrivateData) != "theirs" {
			t.Errorf("negotiated %+v (%v)", n, err)
		}
	}
	a := accepting{listen: iwarp.ListenConfig{Preset: p}, accept: iwarp.AcceptConfig{MPA: ours.Answer()}}
	check(a.from(t, peerRow(t, "windows-v1"), c))

	x, y := rig.NewPipe(t)
	requests := make(chan mpa.StartupFrame, 1)
	go func() {
		b := peerRow(t, "windows-v1")
		s, err := peersim.Respond(&b, y, c)
		if err != nil {
			t.Error(err)
			close(requests)
			return
		}
		requests <- s.Request
	}()
	qp, err := (&iwarp.Dialer{Preset: p, MPA: ours}).Initiate(rig.Within(t), x, nil)
	rig.Must(t, err)
	check(qp.Negotiated(), nil)
	if got := string((<-requests).PrivateData()); got != "\x00\x00\x00\x06\x00\x00\x00\x04ours" {
		t.Errorf("the Request has %q", got)
	}
	_ = qp.Abort()
}

// TestPresetNoReads has consumers that want no RDMA Reads: peers whose RTR
// indication is a Read get along with that.
//
// Proves E04.
func TestPresetNoReads(t *testing.T) {
	for _, p := range iwarp.Presets() {
		respondAs(t, peerRow(t, p.Name)).talks(t, iwarp.Dialer{Preset: &p, NoReads: true})
		a := accepting{listen: iwarp.ListenConfig{Preset: &p}, accept: iwarp.AcceptConfig{NoReads: true}}
		if _, err := a.from(t, peerRow(t, p.Name), peersim.Consumer{}); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

// TestPresetOverruled has settings of the consumer's own.
func TestPresetOverruled(t *testing.T) {
	d := iwarp.Dialer{Preset: lookup(t, "siw"), MPA: mpa.Offer{RTR: mpa.RTRRead, IRD: 3, ORD: 5, NoCRC: true}}
	n := respondAs(t, peerRow(t, "siw")).talks(t, d)
	if n.RTR != mpa.RTRRead || n.IRD != 3 || n.ORD != 5 || n.CRC {
		t.Errorf("negotiated %+v", n)
	}
	a := accepting{
		listen: iwarp.ListenConfig{Preset: lookup(t, "windows-v1"), Dialects: []mpa.Dialect{mpa.DialectRFC6581}},
		accept: iwarp.AcceptConfig{Preset: lookup(t, "irdma"), MPA: mpa.Answer{IRD: 40, ORD: 7, RTR: mpa.RTRWrite}},
	}
	n, err := a.from(t, peerRow(t, "irdma"), peersim.Consumer{})
	if err != nil || n.RTR != mpa.RTRWrite || n.IRD != 40 || n.ORD != 7 {
		t.Errorf("negotiated %+v (%v)", n, err)
	}
}

// TestLookupPreset finds each preset by its name, and nothing else.
func TestLookupPreset(t *testing.T) {
	for _, p := range iwarp.Presets() {
		got, err := iwarp.LookupPreset(strings.ToUpper(p.Name))
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: got %+v (%v)", p.Name, got, err)
		}
	}
	_, err := iwarp.LookupPreset("mlx5")
	if !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "siw, cxgb4, freebsd, irdma, qedr, windows-v1") {
		t.Errorf("got %v", err)
	}
}

// TestPresetsAreCopies changes what Presets returned.
func TestPresetsAreCopies(t *testing.T) {
	for _, p := range iwarp.Presets() {
		p.Dialects[0], p.Reasons[0].Why, p.Initiate.Dialect = 0, "", 0
	}
	if p := lookup(t, "siw"); p.Dialects[0] == 0 || why(p, "Initiate.Dialect") == "" || p.Initiate.Dialect == 0 {
		t.Errorf("got %+v", p)
	}
}

// why returns the first reason for a setting, and "" if there is none.
func why(p *iwarp.Preset, setting string) string {
	for _, r := range p.Reasons {
		if r.Setting == setting {
			return r.Why
		}
	}
	return ""
}

// TestReasons finds a reason for every setting, and a setting for every reason.
func TestReasons(t *testing.T) {
	for _, p := range iwarp.Presets() {
		known := settings("", reflect.ValueOf(p))
		for name, set := range known {
			if set && why(&p, name) == "" {
				t.Errorf("%s: %s has no reason", p.Name, name)
			}
		}
		for _, r := range p.Reasons {
			if _, ok := known[r.Setting]; !ok || r.Why == "" {
				t.Errorf("%s: there is no setting %q", p.Name, r.Setting)
			}
			if got := why(&p, r.Setting); got != r.Why {
				t.Errorf("%s: %s: why is %q", p.Name, r.Setting, got)
			}
		}
	}
}

// settings returns the names of the fields that are settings, and whether they are
// not zero.
func settings(prefix string, v reflect.Value) map[string]bool {
	set := map[string]bool{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch {
		case name == "Name", name == "Peer", name == "Reasons":
		case v.Field(i).Kind() == reflect.Struct:
			for inner, is := range settings(name+".", v.Field(i)) {
				set[inner] = is
			}
		default:
			set[prefix+name] = !v.Field(i).IsZero()
		}
	}
	return set
}
