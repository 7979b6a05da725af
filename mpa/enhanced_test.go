package mpa_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves E01, E06, E07, E16: the enhanced data of a Request, by what the consumer wants.
func TestEnhancedRequest(t *testing.T) {
	const send, write, read, none = mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead, mpa.NoNegotiation
	for _, c := range []struct {
		offer mpa.Offer
		want  string
	}{
		{mpa.Offer{IRD: 1, ORD: 2}, "c0 01 c0 02 # A B C D"},
		{mpa.Offer{IRD: 1, ORD: 2, RTR: send}, "c0 01 00 02 # A B"},
		{mpa.Offer{IRD: 1, ORD: 2, RTR: write}, "80 01 80 02 # A C"},
		{mpa.Offer{IRD: 1, ORD: 2, RTR: read}, "80 01 40 02 # A D"},
		{mpa.Offer{IRD: 1, ORD: 2, RTR: write | read}, "80 01 c0 02 # A C D"},
		{mpa.Offer{IRD: 1, ORD: 2, ClientServer: true, RTR: send | write | read},
			"00 01 00 02 # B, C and D 0 with A=0"},
		{mpa.Offer{IRD: 0x3ffe, ORD: 0x3ffe}, "ff fe ff fe # the largest depths"},
		{mpa.Offer{IRD: none, ORD: none}, "ff ff ff ff # left to the ULP, and yet peer-to-peer"},
		{mpa.Offer{IRD: none, ORD: 0, ClientServer: true}, "3f ff 00 00"},
	} {
		c.offer.NoCRC = true
		initiator(t, c.offer, request(2, c.want))
	}
}

// Proves E06: the zero-length messages that are RTR indications are those of three opcodes.
func TestRTROf(t *testing.T) {
	for op := range uint8(16) {
		want := map[uint8]mpa.RTR{0: mpa.RTRWrite, 1: mpa.RTRRead, 3: mpa.RTRSend}[op]
		if got := mpa.RTROf(op, true); got != want {
			t.Errorf("opcode %d: %v, want %v", op, got, want)
		}
		if got := mpa.RTROf(op, false); got != 0 {
			t.Errorf("opcode %d with bytes: %v", op, got)
		}
	}
}

// Proves E04, E06: a responder that names the Read raises its IRD to 1, but not if the
// initiator's ORD is
// 0x3FFF: then it "MUST" leave it "unchanged".
func TestReadRaisesIRD(t *testing.T) {
	for _, c := range []struct {
		request       string
		offer         mpa.Answer
		reply         string
		wantEffective mpa.Depth
	}{
		{"80 00 40 00", mpa.Answer{}, "80 01 40 00", 1},
		{"80 00 40 00", mpa.Answer{IRD: 7}, "80 07 40 00", 7},
		{"80 00 c0 02", mpa.Answer{MaxIRD: 9}, "80 02 c0 00", 2},
		{"80 00 7f ff", mpa.Answer{}, "bf ff 40 00", 0},
		{"80 00 7f ff", mpa.Answer{IRD: 7, MaxIRD: 9}, "bf ff 40 00", 7},
		{"80 00 40 00", mpa.Answer{IRD: mpa.NoNegotiation}, "bf ff 40 00", mpa.NoNegotiation},
		{"80 00 80 00", mpa.Answer{}, "80 00 80 00", 0}, // a Write needs none
	} {
		d, r := responder(t)
		d.input(frame(request(2, c.request)), 0)
		c.offer.NoCRC = true
		d.wantReply(c.offer, reply(2, c.reply))
		if got := r.Negotiated().IRD; got != c.wantEffective {
			t.Errorf("%s, %+v: IRD %d", c.request, c.offer, got)
		}
	}
}

// Proves E05, E10: no kind of RTR in common is code 7, an IRD that cannot be is code 6, and of
// both the first is
// reported.
func TestInitiatorTerminates(t *testing.T) {
	for _, c := range []struct {
		reply string
		code  mpa.Code
	}{
		{"80 04 80 02", 0},
		{"80 04 80 05", mpa.CodeInsufficientIRD},
		{"c0 04 00 02", mpa.CodeNoMatchingRTR},
		{"c0 04 00 05", mpa.CodeNoMatchingRTR},
		{"00 04 00 02", mpa.CodeNoMatchingRTR},
		{"80 04 bf fe", mpa.CodeInsufficientIRD},
		{"80 04 bf ff", 0}, // left to the ULP
	} {
		i := clone(t, mpa.Offer{IRD: 2, ORD: 4, MaxIRD: 4, RTR: mpa.RTRWrite | mpa.RTRRead})
		if _, err := i.Input(epoch, frame(reply(2, c.reply))); err != nil || i.Negotiated().TerminateCode != c.code {
			t.Errorf("%s: %v, %v", c.reply, i.Negotiated().TerminateCode, err)
		}
	}
}

// Proves Q04, F11, F14, N05, K01, T05: M goes by direction and C is for both, in every
// dialect; those of RDMAC RNICs use
// both in any case.
func TestEveryDialectMarkersAndCRC(t *testing.T) {
	for _, d := range mpa.Dialects() {
		for n := range 16 {
			ours := mpa.Offer{Dialect: d, Markers: n&1 != 0, NoCRC: n&2 != 0}
			theirs := mpa.Answer{Markers: n&4 != 0, NoCRC: n&8 != 0}
			i, err := mpa.NewInitiator(ours)
			testrig.Must(t, err)
			v := newVirtual(i, mpa.NewResponder(rtrServed), theirs, accepts)
			v.runWhole()
			a, b := i.Negotiated(), v.r.m.Negotiated()
			always := d == mpa.DialectRevision0
			want := [3]bool{ours.Markers || always, theirs.Markers || always, !ours.NoCRC || !theirs.NoCRC || always}
			for _, got := range [][3]bool{{a.MarkersReceive, a.MarkersSend, a.CRC},
				{b.MarkersSend, b.MarkersReceive, b.CRC}} {
				if got != want || !v.i.up(fpduOfResponder) || !v.r.up(fpduOfInitiator) || v.wrong != nil {
					t.Errorf("%v, %+v to %+v: %v want %v, %v", d, ours, theirs, got, want, v.wrong)
				}
			}
		}
	}
}

// Proves E03, E04, E05, E06: what an initiator makes of the Reply's IRD and ORD.
func TestInitiatorDepths(t *testing.T) {
	const none = mpa.NoNegotiation
	for _, c := range []struct {
		name             string
		ird, ord, most   mpa.Depth
		peerIRD, peerORD mpa.Depth
		wantIRD, wantORD mpa.Depth
		code             mpa.Code
	}{
		{"as asked", 4, 4, 0, 4, 4, 4, 4, 0},
		{"the responder has more", 4, 4, 0, 128, 4, 4, 4, 0},
		{"ORD is lowered", 4, 16, 0, 2, 4, 4, 2, 0},
		{"ORD is lowered to nothing", 4, 16, 0, 0, 4, 4, 0, 0},
		{"the responder needs less", 4, 4, 0, 4, 1, 4, 4, 0},
		{"IRD is raised", 4, 4, 8, 4, 8, 8, 4, 0},
		{"IRD is raised as far as needed", 4, 4, 99, 4, 8, 8, 4, 0},
		{"IRD cannot be raised enough", 4, 4, 8, 4, 9, 4, 4, mpa.CodeInsufficientIRD},
		{"IRD may not be raised", 4, 4, 0, 4, 5, 4, 4, mpa.CodeInsufficientIRD},
		{"the responder's ORD is left to the ULP", 4, 4, 0, 4, none, 4, 4, 0},
		{"the responder's IRD is left to the ULP", 4, 4, 0, none, 4, 4, 4, 0},
		{"our IRD is left to the ULP", none, 4, 0, 4, 9, none, 4, 0},
		{"our ORD is left to the ULP", 4, none, 0, none, 4, 4, none, 0},
		{"our ORD is left to the ULP, and answered", 4, none, 0, 7, 4, 4, 7, 0},
		{"the largest values", 0x3ffe, 0x3ffe, 0, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := mpa.NewInitiator(mpa.Offer{IRD: c.ird, ORD: c.ord, MaxIRD: c.most})
			testrig.Must(t, err)
			i.Start(epoch)
			d := &dialogue{T: t, m: i, twin: clone(t, mpa.Offer{IRD: c.ird, ORD: c.ord, MaxIRD: c.most}), now: epoch}
			e := mpa.Enhanced{A: true, C: true, IRD: c.peerIRD, ORD: c.peerORD}
			d.input(frame(enhancedReply(e)), 0)
			d.wantOK()
			n := i.Negotiated()
			if n.IRD != c.wantIRD || n.ORD != c.wantORD || n.TerminateCode != c.code {
				t.Errorf("IRD %d ORD %d code %d", n.IRD, n.ORD, n.TerminateCode)
			}
			if n.PeerIRD != c.peerIRD || n.PeerORD != c.peerORD {
				t.Errorf("peer's IRD %d ORD %d", n.PeerIRD, n.PeerORD)
			}
		})
	}
}

func enhancedReply(e mpa.Enhanced) mpa.StartupFields {
	f := reply(2, "")
	f.PrivateData = mpa.AppendEnhanced(nil, &e)
	return f
}

// Proves E07, E08, E09, E10, E12: which RTR indication an initiator sends, by the choice of
// its consumer.
func TestInitiatorRTR(t *testing.T) {
	const write, read, send, all = mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend, able
	one := func(rtr mpa.RTR) mpa.Enhanced {
		return mpa.Enhanced{A: true, B: rtr&send != 0, C: rtr&write != 0, D: rtr&read != 0, IRD: 1, ORD: 1}
	}
	noIRD := func(rtr mpa.RTR) mpa.Enhanced { e := one(rtr); e.IRD = 0; return e }
	for _, c := range []struct {
		name    string
		offer   mpa.Offer
		reply   mpa.Enhanced
		offered mpa.RTR
		want    mpa.RTR
		p2p     bool
		code    mpa.Code
	}{
		{"all", mpa.Offer{}, one(all), all, write, true, 0},
		{"write and read", mpa.Offer{}, one(write | read), all, write, true, 0},
		{"send and write", mpa.Offer{}, one(send | write), all, write, true, 0},
		{"send and read", mpa.Offer{}, one(send | read), all, read, true, 0},
		{"read", mpa.Offer{}, one(read), all, read, true, 0},
		{"send", mpa.Offer{}, one(send), all, send, true, 0},
		{"several bits", mpa.Offer{RTR: write | read}, one(all), write | read, write, true, 0},
		{"send was not offered", mpa.Offer{RTR: write | read}, one(send), write | read, 0, true, mpa.CodeNoMatchingRTR},
		{"none named", mpa.Offer{}, one(0), all, 0, true, mpa.CodeNoMatchingRTR},
		{"write to a read", mpa.Offer{RTR: write}, one(read), write, 0, true, mpa.CodeNoMatchingRTR},
		{"send alone", mpa.Offer{RTR: send}, one(send | write), send, send, true, 0},
		{"read before send", mpa.Offer{RTR: send | read}, one(send | read), send | read, read, true, 0},
		{"read without IRD before send", mpa.Offer{RTR: send | read}, noIRD(send | read), send | read, read, true, 0},
		{"read without IRD", mpa.Offer{RTR: read}, noIRD(read), read, read, true, 0},
		{"A was cleared", mpa.Offer{}, mpa.Enhanced{IRD: 1, ORD: 1}, all, 0, true, mpa.CodeNoMatchingRTR},
		{"A was cleared, C left", mpa.Offer{}, mpa.Enhanced{C: true, IRD: 1, ORD: 1}, all, 0,
			true, mpa.CodeNoMatchingRTR},
		{"client-server", mpa.Offer{ClientServer: true}, mpa.Enhanced{IRD: 1, ORD: 1}, 0, 0, false, 0},
		{"client-server, C left", mpa.Offer{ClientServer: true}, mpa.Enhanced{C: true, IRD: 1, ORD: 1}, 0, 0, false, 0},
		{"client-server, A was set", mpa.Offer{ClientServer: true}, one(read | send), 0, read, true, 0},
		{"client-server, A was set, send", mpa.Offer{ClientServer: true}, one(send), 0, send, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.offer.IRD, c.offer.ORD = 1, 1
			i := clone(t, c.offer)
			d := &dialogue{T: t, m: i, twin: clone(t, c.offer), now: epoch}
			d.input(frame(enhancedReply(c.reply)), 0)
			d.wantOK()
			n := i.Negotiated()
			if n.OfferedRTR != c.offered || n.RTR != c.want || n.PeerToPeer != c.p2p || n.TerminateCode != c.code {
				t.Errorf("offered %v, chosen %v, peer-to-peer %v, code %d",
					n.OfferedRTR, n.RTR, n.PeerToPeer, n.TerminateCode)
			}
		})
	}
}

// TestDepthString prints depths as a person reads them, and as numbers where asked to.
func TestDepthString(t *testing.T) {
	for depth, want := range map[mpa.Depth]string{
		0: "0 0", 7: "7 7", mpa.MaxDepth: "16382 16382", mpa.NoNegotiation: "not negotiated 16383",
	} {
		if got := fmt.Sprintf("%v %d", depth, depth); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
