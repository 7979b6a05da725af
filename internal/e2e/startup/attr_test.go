package startup

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/google/go-cmp/cmp"
)

// The kinds of RNIC, and short names for what can be said of markers.
const (
	permissive    = mpa.KindPermissive
	nonPermissive = mpa.KindNonPermissive
	rdmac         = mpa.KindRDMAC

	unsaid = iwarp.MarkersDefault
	off    = iwarp.MarkersOff
	on     = iwarp.MarkersOn
)

// TestQueryRNIC asks RNICs of every kind for their attributes.
//
// Proves V01, N01: the marker receive preference, the versions, and whether a QP can
// choose one of them.
func TestQueryRNIC(t *testing.T) {
	limits := iwarp.Limits{PDs: 1, QPs: 2, CQs: 3, IRD: 5}
	for _, c := range []struct {
		cfg  iwarp.RNICConfig
		want iwarp.RNICAttr
	}{
		{iwarp.RNICConfig{}, iwarp.RNICAttr{Kind: permissive, Versions: []iwarp.Version{iwarp.Version0, iwarp.Version1},
			VersionSelectable: true}},
		{iwarp.RNICConfig{Markers: true}, iwarp.RNICAttr{Kind: permissive, MarkersReceive: true,
			Versions: []iwarp.Version{iwarp.Version0, iwarp.Version1}, VersionSelectable: true}},
		{iwarp.RNICConfig{Kind: nonPermissive}, iwarp.RNICAttr{Kind: nonPermissive,
			Versions: []iwarp.Version{iwarp.Version1}}},
		{iwarp.RNICConfig{Kind: rdmac}, iwarp.RNICAttr{Kind: rdmac, MarkersReceive: true,
			Versions: []iwarp.Version{iwarp.Version0}}},
		{iwarp.RNICConfig{Kind: nonPermissive, Limits: limits},
			iwarp.RNICAttr{Kind: nonPermissive, Versions: []iwarp.Version{iwarp.Version1}, Limits: limits, MaxIRD: 5}},
	} {
		c.want.MaxQueueDepth, c.want.MaxCQDepth = iwarp.MaxQueueDepth, 1<<22
		c.want.MaxSGE, c.want.MaxInline, c.want.MaxORD = iwarp.MaxSGE, iwarp.MaxInline, 0x3ffe
		c.want.MaxMessage = 1<<32 - 1
		c.want.MaxHeld = (138 + 128) << 10
		if c.want.MaxIRD == 0 {
			c.want.MaxIRD = 0x3ffe
		}
		if diff := cmp.Diff(c.want, rig.NewRNIC(t, c.cfg).Query()); diff != "" {
			t.Errorf("%+v: %s", c.cfg, diff)
		}
	}
}

// streams are attributes with the error that an RNIC of a kind has for them.
var streams = []struct {
	kind mpa.Kind
	attr iwarp.StreamAttr
	err  error
	text string
}{
	{permissive, iwarp.StreamAttr{}, nil, ""},
	{permissive, iwarp.StreamAttr{Version: iwarp.Version0}, nil, ""},
	{permissive, iwarp.StreamAttr{Version: iwarp.Version1}, nil, ""},
	{permissive, iwarp.StreamAttr{MarkersReceive: off, MarkersSend: off}, nil, ""},
	{permissive, iwarp.StreamAttr{MarkersReceive: on, MarkersSend: on, Version: iwarp.Version0}, nil, ""},
	{permissive, iwarp.StreamAttr{MarkersReceive: off, Version: iwarp.Version0}, iwarp.ErrMarkersRequired,
		"disabling markers not supported"},
	{permissive, iwarp.StreamAttr{MarkersSend: off, Version: iwarp.Version0}, iwarp.ErrMarkersRequired,
		"disabling markers not supported"},
	{permissive, iwarp.StreamAttr{Version: 3}, iwarp.ErrVersion, "version not supported"},
	{permissive, iwarp.StreamAttr{MarkersSend: 3}, iwarp.ErrInvalid, "markers value 3"},
	{nonPermissive, iwarp.StreamAttr{}, nil, ""},
	{nonPermissive, iwarp.StreamAttr{MarkersReceive: off, MarkersSend: on, Version: iwarp.Version1}, nil, ""},
	{nonPermissive, iwarp.StreamAttr{Version: iwarp.Version0}, iwarp.ErrVersion,
		"DDP/RDMAP version not supported: version 0 by an RNIC of kind non-permissive"},
	{rdmac, iwarp.StreamAttr{}, nil, ""},
	{rdmac, iwarp.StreamAttr{MarkersReceive: on, MarkersSend: on, Version: iwarp.Version0}, nil, ""},
	{rdmac, iwarp.StreamAttr{Version: iwarp.Version1}, iwarp.ErrVersion, "version 1 by an RNIC of kind rdmac"},
	{rdmac, iwarp.StreamAttr{MarkersReceive: off}, iwarp.ErrMarkersRequired, "disabling markers not supported"},
	{rdmac, iwarp.StreamAttr{MarkersSend: off}, iwarp.ErrMarkersRequired, "disabling markers not supported"},
}

func wantAttrError(t *testing.T, what string, err, want error, text string) {
	t.Helper()
	var op *iwarp.OpError
	switch {
	case want == nil && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != nil && (!errors.Is(err, want) || !errors.As(err, &op)):
		t.Errorf("%s: got %v, want %v", what, err, want)
	case want != nil && !rig.Contains(err, text):
		t.Errorf("%s: got %q, want %q in it", what, err, text)
	}
}

// TestStreamAttr creates QPs with attributes, and gives them to QPs in StateIdle.
//
// Proves V02, V04, N01.
func TestStreamAttr(t *testing.T) {
	for _, c := range streams {
		pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Kind: c.kind}))
		what := c.kind.String()
		_, err := pd.CreateQP(iwarp.QPConfig{Stream: c.attr})
		wantAttrError(t, what+": CreateQP", err, c.err, c.text)
		qp := rig.NewQP(t, pd, iwarp.QPConfig{})
		before := qp.Query()
		wantAttrError(t, what+": ModifyStream", qp.ModifyStream(c.attr), c.err, c.text)
		if c.err != nil && qp.Query() != before {
			t.Errorf("%s: a refused ModifyStream has changed %+v to %+v", what, before, qp.Query())
		}
	}
}

// TestChosenAttr asks QPs without a connection for their attributes: what they were
// set to, and what is certain anyhow.
//
// Proves V03.
func TestChosenAttr(t *testing.T) {
	for _, c := range []struct {
		rnic      iwarp.RNICConfig
		set, want iwarp.StreamAttr
		kind      mpa.Kind
	}{
		{iwarp.RNICConfig{}, iwarp.StreamAttr{}, iwarp.StreamAttr{MarkersReceive: off}, permissive},
		{iwarp.RNICConfig{Markers: true}, iwarp.StreamAttr{}, iwarp.StreamAttr{MarkersReceive: on}, permissive},
		{iwarp.RNICConfig{Markers: true}, iwarp.StreamAttr{MarkersReceive: off},
			iwarp.StreamAttr{MarkersReceive: off}, permissive},
		{iwarp.RNICConfig{}, iwarp.StreamAttr{MarkersReceive: on, MarkersSend: off, Version: iwarp.Version1},
			iwarp.StreamAttr{MarkersReceive: on, MarkersSend: off, Version: iwarp.Version1}, nonPermissive},
		{iwarp.RNICConfig{}, iwarp.StreamAttr{Version: iwarp.Version0},
			iwarp.StreamAttr{MarkersReceive: on, MarkersSend: on, Version: iwarp.Version0}, rdmac},
		{iwarp.RNICConfig{Kind: nonPermissive}, iwarp.StreamAttr{},
			iwarp.StreamAttr{MarkersReceive: off, Version: iwarp.Version1}, nonPermissive},
		{iwarp.RNICConfig{Kind: rdmac}, iwarp.StreamAttr{},
			iwarp.StreamAttr{MarkersReceive: on, MarkersSend: on, Version: iwarp.Version0}, rdmac},
	} {
		pd := rig.NewPD(t, rig.NewRNIC(t, c.rnic))
		created, modified := rig.NewQP(t, pd, iwarp.QPConfig{Stream: c.set}), rig.NewQP(t, pd, iwarp.QPConfig{})
		rig.Should(t, modified.ModifyStream(c.set))
		for _, qp := range []*iwarp.QP{created, modified} {
			if a := qp.Query(); a.Stream != c.want || a.Kind != c.kind {
				t.Errorf("%+v set on %+v: %+v, %v", c.set, c.rnic, a.Stream, a.Kind)
			}
		}
	}
}

// TestModifyStreamStates changes attributes in every state but Idle, and while a
// Dialer connects the QP.
//
// Proves V04: only from Idle to Idle.
func TestModifyStreamStates(t *testing.T) {
	refuses := func(what string, qp *iwarp.QP) {
		t.Helper()
		if err := qp.ModifyStream(iwarp.StreamAttr{}); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ini, p := rig.InitiateToPeer(t)
	refuses("RTS", ini.QP)
	rig.Must(t, ini.Modify(iwarp.StateTerminate))
	refuses("Terminate", ini.QP)
	p.Conn.Close()
	_ = ini.WantEnd()
	refuses("Error", ini.QP)
	rig.Must(t, ini.Modify(iwarp.StateIdle))
	if err := ini.ModifyStream(iwarp.StreamAttr{}); err != nil {
		t.Errorf("Idle again: %v", err)
	}
	ini, p = rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	rig.Must(t, ini.Modify(iwarp.StateClosing))
	refuses("Closing", ini.QP)
	p.Conn.Close()
	_ = ini.WantEnd()
	if err := ini.ModifyStream(iwarp.StreamAttr{}); err != nil {
		t.Errorf("Idle after an orderly close: %v", err)
	}
	ini.MustPostRecv(1) // it can have another connection

	ln := rig.ListenTCP(t)
	dialed := rig.DialInBackground(t, func() error {
		return new(iwarp.Dialer).DialQP(rig.Within(t), ini.QP,
			"tcp", ln.Addr().String())
	})
	p = rig.AcceptRequest(t, ln)
	refuses("being connected", ini.QP)
	p.Conn.Close()
	rig.AcceptPeer(t, ln).Conn.Close()
	if err := <-dialed; err == nil {
		t.Error("connected")
	}
	_ = ini.Close()
	if err := ini.ModifyStream(iwarp.StreamAttr{}); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestStreamInForce connects QPs of all attributes, and asks for them again.
//
// Proves V02, V03, N06, Q04, F11: they take effect when the QP is connected. Markers are
// not sent to a peer that does not ask for them.
func TestStreamInForce(t *testing.T) {
	attr := func(r, s iwarp.Markers, v iwarp.Version) iwarp.StreamAttr {
		return iwarp.StreamAttr{MarkersReceive: r, MarkersSend: s, Version: v}
	}
	any0, v0, v1 := iwarp.VersionAny, iwarp.Version0, iwarp.Version1
	for _, c := range []struct {
		name     string
		ini, res iwarp.StreamAttr
		offer    mpa.Offer
		prefers  bool             // the Initiator's RNIC prefers markers
		want     iwarp.StreamAttr // of the Initiator
	}{
		{"nothing said", attr(0, 0, any0), attr(0, 0, any0), mpa.Offer{}, false, attr(off, off, v1)},
		{"the RNIC prefers them", attr(0, 0, any0), attr(0, 0, any0), mpa.Offer{}, true, attr(on, off, v1)},
		{"the QP does not", attr(off, 0, any0), attr(0, 0, any0), mpa.Offer{}, true, attr(off, off, v1)},
		{"received", attr(on, 0, any0), attr(0, 0, any0), mpa.Offer{}, false, attr(on, off, v1)},
		{"sent", attr(0, 0, any0), attr(on, 0, any0), mpa.Offer{}, false, attr(off, on, v1)},
		{"on both ways", attr(on, on, v1), attr(on, on, v1), mpa.Offer{}, false, attr(on, on, v1)},
		{"to be sent, and not asked for", attr(0, on, v1), attr(off, 0, v1), mpa.Offer{}, false, attr(off, off, v1)},
		{"version 0", attr(0, 0, v0), attr(0, 0, any0), mpa.Offer{}, false, attr(on, on, v0)},
		{"version 0 by both", attr(on, on, v0), attr(0, 0, v0), mpa.Offer{}, false, attr(on, on, v0)},
		{"version 0 by the Responder", attr(0, 0, any0), attr(0, 0, v0), mpa.Offer{Dialect: mpa.DialectRFC5044},
			false, attr(on, on, v0)},
		{"version 1 in revision 1", attr(0, 0, v1), attr(0, 0, any0), mpa.Offer{Dialect: mpa.DialectRFC5044},
			false, attr(off, off, v1)},
		{"version 0 by Start Keys", attr(0, 0, any0), attr(0, 0, any0), mpa.Offer{Dialect: mpa.DialectStartKey},
			false, attr(off, off, v0)},
		{"version 0 and its markers by Start Keys", attr(0, on, v0), attr(0, 0, any0),
			mpa.Offer{Dialect: mpa.DialectStartKey}, false, attr(on, off, v0)},
	} {
		run := func(t *testing.T) {
			ini, res := rig.Setup{
				Pipe: true,
				Dialer: iwarp.Dialer{PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Markers: c.prefers})),
					QP: iwarp.QPConfig{Stream: c.ini}, MPA: c.offer},
				Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{Stream: c.res}},
			}.Connect(t)
			rig.Works(t, ini, res)
			i, r := ini.Query().Stream, res.Query().Stream
			if i != c.want {
				t.Errorf("the Initiator has %+v, want %+v", i, c.want)
			}
			if r != attr(c.want.MarkersSend, c.want.MarkersReceive, c.want.Version) {
				t.Errorf("the Responder has %+v", r)
			}
			if n := ini.Negotiated(); n.DDPVersion != n.RDMAPVersion || n.DDPVersion+1 != uint8(c.want.Version) {
				t.Errorf("negotiated %+v", n)
			}
			rig.EndInOrder(t, ini, res)
			rig.Must(t, ini.Modify(iwarp.StateIdle))
			if got, set := ini.Query().Stream, rig.NewQP(t, ini.PD,
				iwarp.QPConfig{Stream: c.ini}).Query().Stream; got != set {
				t.Errorf("Idle again it has %+v, want %+v", got, set)
			}
		}
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, run) })
	}
}

// TestStreamConflicts connects QPs whose attributes do not go together with the offer,
// or with the peer. A Request can still be answered.
//
// Proves V02, N01, N03: a clear error here; a kind can only be narrowed.
func TestStreamConflicts(t *testing.T) {
	version := func(v iwarp.Version) iwarp.StreamAttr { return iwarp.StreamAttr{Version: v} }
	for _, c := range []struct {
		name  string
		kind  mpa.Kind
		attr  iwarp.StreamAttr
		offer mpa.Offer
		err   error
	}{
		{"narrowed, then another kind", permissive, version(iwarp.Version1),
			mpa.Offer{Kind: permissive}, iwarp.ErrVersion},
		{"version 1 and an RDMAC offer", permissive, version(iwarp.Version1), mpa.Offer{Kind: rdmac}, iwarp.ErrVersion},
		{"version 0 and a non-permissive offer", permissive, version(iwarp.Version0),
			mpa.Offer{Kind: nonPermissive}, iwarp.ErrVersion},
		{"a non-permissive RNIC made permissive", nonPermissive, version(0),
			mpa.Offer{Kind: permissive}, iwarp.ErrVersion},
		{"an RDMAC RNIC made permissive", rdmac, version(0), mpa.Offer{Kind: permissive}, iwarp.ErrVersion},
		{"no such kind", permissive, version(0), mpa.Offer{Kind: 9}, mpa.ErrOffer},
		{"version 0 in revision 1", permissive, version(iwarp.Version0),
			mpa.Offer{Dialect: mpa.DialectRFC5044}, mpa.ErrOffer},
		{"version 1 by Start Keys", permissive, version(iwarp.Version1),
			mpa.Offer{Dialect: mpa.DialectStartKey}, mpa.ErrOffer},
		{"markers off and asked for", permissive, iwarp.StreamAttr{MarkersReceive: off},
			mpa.Offer{Markers: true}, iwarp.ErrInvalid},
		{"markers off in revision 0", permissive, iwarp.StreamAttr{MarkersReceive: off},
			mpa.Offer{Dialect: mpa.DialectRevision0}, iwarp.ErrMarkersRequired},
		{"markers off and an RDMAC offer", permissive, iwarp.StreamAttr{MarkersSend: off}, mpa.Offer{Kind: rdmac},
			iwarp.ErrMarkersRequired},
	} {
		d := iwarp.Dialer{PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Kind: c.kind})),
			QP: iwarp.QPConfig{Stream: c.attr}, MPA: c.offer}
		a, _ := rig.NewPipe(t)
		if _, err := d.Initiate(t.Context(), a, nil); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	for _, c := range []struct {
		name    string
		attr    iwarp.StreamAttr
		accept  mpa.Answer
		request mpa.StartupFields
		err     error
	}{
		{"markers that it does not send", iwarp.StreamAttr{MarkersSend: off}, mpa.Answer{},
			mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, M: true}, iwarp.ErrMarkersRequired},
		{"an RDMAC RNIC without markers", iwarp.StreamAttr{MarkersReceive: off}, mpa.Answer{},
			mpa.StartupFields{Key: mpa.KeyRequest, M: true, C: true}, iwarp.ErrMarkersRequired},
		{"an RDMAC RNIC with version 1", version(iwarp.Version1), mpa.Answer{},
			mpa.StartupFields{Key: mpa.KeyRequest, M: true, C: true}, iwarp.ErrVersion},
		{"an RDMAC RNIC with a non-permissive offer", version(0), mpa.Answer{Kind: nonPermissive},
			mpa.StartupFields{Key: mpa.KeyRequest, M: true, C: true}, iwarp.ErrVersion},
	} {
		ln := rig.Listen(t, iwarp.ListenConfig{})
		p, req := rig.Ask(t, ln, rig.Frame(c.request))
		if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{Stream: c.attr},
			MPA: c.accept}); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{}); err != nil {
			t.Errorf("%s: accepted otherwise: %v", c.name, err)
		}
		p.WantFrame(mpa.KeyReply)
	}
}

// TestStreamConflictsLate has a QP learn only from the peer's answer that it cannot
// have the connection. The peer is told, and the QP can be connected again.
//
// Proves V02, E11.
func TestStreamConflictsLate(t *testing.T) {
	withM := rig.Reply(2)
	withM.M = true
	old := mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true}
	for _, c := range []struct {
		name    string
		attr    iwarp.StreamAttr
		dialect mpa.Dialect
		reply   mpa.StartupFields
		version uint8 // of the Terminate
		err     error
	}{
		{"markers to be sent", iwarp.StreamAttr{MarkersSend: off}, 0, withM, 1, iwarp.ErrMarkersRequired},
		{"an RDMAC RNIC", iwarp.StreamAttr{MarkersReceive: off}, mpa.DialectRFC5044, old, 0, iwarp.ErrMarkersRequired},
	} {
		qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{Stream: c.attr})
		ln := rig.ListenTCP(t)
		d := iwarp.Dialer{MPA: mpa.Offer{Dialect: c.dialect}}
		dialed := rig.DialInBackground(t, func() error {
			return d.DialQP(rig.Within(t), qp,
				"tcp", ln.Addr().String())
		})
		p := rig.AcceptRequest(t, ln)
		p.Send(rig.Frame(c.reply))
		p.Operate(script.Terms{MarkersReceive: true, CRC: true, Version: c.version})
		p.WantTerminate(0x2005)
		p.WantClosed()
		p.Conn.Close()
		if err := <-dialed; !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if qp.State() != iwarp.StateIdle {
			t.Errorf("%s: in state %v", c.name, qp.State())
		}
		if err := qp.ModifyStream(iwarp.StreamAttr{}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestAttrNames prints what is set, for logs and errors.
func TestAttrNames(t *testing.T) {
	var got []string
	for i := range 4 {
		got = append(got, iwarp.Version(i).String(), iwarp.Markers(i).String())
	}
	want := []string{"any", "default", "0", "off", "1", "on", "version value 3", "markers value 3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
