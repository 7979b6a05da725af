package peers_test

import (
	"reflect"
	"testing"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/mpa"
)

// TestAssumed: what is assumed is a field of Behavior, and Knows says so.
func TestAssumed(t *testing.T) {
	for _, p := range peers.All() {
		for _, name := range p.Assumed {
			if _, ok := reflect.TypeFor[peers.Behavior]().FieldByName(name); !ok || p.Knows("AsksCRC", name) {
				t.Errorf("%s: there is no field %q that is not known", p.Name, name)
			}
		}
		if !p.Knows("AsksCRC") {
			t.Errorf("%s: nothing is known", p.Name)
		}
	}
}

// TestLookup finds each peer by its name, and nothing else.
func TestLookup(t *testing.T) {
	for _, p := range peers.All() {
		if got, ok := peers.Lookup(p.Name); !ok || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: got %+v", p.Name, got)
		}
		if p.Title == "" || p.Product == "" || p.Source == "" {
			t.Errorf("%+v", p)
		}
	}
	if p, ok := peers.Lookup("mlx5"); ok {
		t.Errorf("got %+v", p)
	}
}

// replies are all Replies of a peer to Requests of ours, by what was offered, and with several depths.
func replies(p *peers.Peer) (all []mpa.Negotiated) {
	n := mpa.Negotiated{Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC5044, Revision: 1, PeerRevision: 1, CRC: true}
	all = append(all, n)
	if p.Highest < 2 {
		return all
	}
	n.Dialect, n.Revision, n.PeerRevision, n.Enhanced = mpa.DialectRFC6581, 2, 2, true
	for _, depth := range []mpa.Depth{0, 1, 32, 200, mpa.NoNegotiation} {
		n.PeerIRD, n.PeerORD = p.AnswerDepths(p.MaxIRD, p.MaxORD, depth, depth)
		n.PeerToPeer, n.OfferedRTR, n.AnsweredRTR = false, 0, 0
		all = append(all, n)
		n.PeerToPeer = true
		for n.OfferedRTR = 1; n.OfferedRTR <= mpa.RTRSend|mpa.RTRWrite|mpa.RTRRead; n.OfferedRTR++ {
			n.AnsweredRTR = p.AnswerRTR(n.OfferedRTR)
			all = append(all, n)
		}
	}
	return all
}

// TestLikeSIW counts the Replies of all peers that are taken for siw's: none of another's is, and siw's are where Write
// and Read were offered. Each Reply of siw's may be siw's.
func TestLikeSIW(t *testing.T) {
	const both = mpa.RTRWrite | mpa.RTRRead
	mistaken := 0
	for _, p := range peers.All() {
		for _, n := range replies(&p) {
			siw := p.Name == "siw"
			like := peers.LikeSIW(&n)
			if like && !siw {
				mistaken++
				t.Logf("%s: %+v", p.Title, n)
			}
			if siw && like != (n.OfferedRTR&both == both) || siw && !peers.MayBeSIW(&n) {
				t.Errorf("siw is taken for siw: %t, and may be: %t: %+v", like, peers.MayBeSIW(&n), n)
			}
		}
	}
	if mistaken > 0 {
		t.Errorf("%d Replies of others are taken for siw's", mistaken)
	}
}

// TestNotSIW: what siw never does shows that a peer is another.
func TestNotSIW(t *testing.T) {
	siw, _ := peers.Lookup("siw")
	for name, change := range map[string]func(*mpa.Negotiated){
		"markers to it":        func(n *mpa.Negotiated) { n.MarkersSend = true },
		"markers from it":      func(n *mpa.Negotiated) { n.MarkersReceive = true },
		"its IRD":              func(n *mpa.Negotiated) { n.PeerIRD = peers.SIWDepth + 1 },
		"its ORD":              func(n *mpa.Negotiated) { n.PeerORD = mpa.NoNegotiation },
		"two kinds":            func(n *mpa.Negotiated) { n.AnsweredRTR |= mpa.RTRRead },
		"a Send":               func(n *mpa.Negotiated) { n.AnsweredRTR = mpa.RTRSend },
		"a lower revision":     func(n *mpa.Negotiated) { n.PeerRevision = 1 },
		"a Start Key":          func(n *mpa.Negotiated) { n.Dialect = mpa.DialectStartKey },
		"that it is Initiator": func(n *mpa.Negotiated) { n.Role = mpa.RoleResponder },
	} {
		all := replies(&siw)
		n := all[len(all)-1] // to all kinds
		n.PeerIRD, n.PeerORD = 32, 32
		if !peers.LikeSIW(&n) {
			t.Fatalf("%+v", n)
		}
		if change(&n); peers.LikeSIW(&n) || peers.MayBeSIW(&n) {
			t.Errorf("%s does not matter", name)
		}
	}
}
