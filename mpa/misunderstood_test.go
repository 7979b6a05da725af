package mpa_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/mpa"
)

// foreign is a Responder of RFC 5044 as others have written it: it reads the 20 bytes that a
// Request has at least before it looks at them, and may repeat the reserved bits.
type foreign struct {
	repeats bool
	buf     []byte
	out     []byte
	done    bool
	err     error
	neg     mpa.Negotiated
}

func (f *foreign) copy() machine {
	c := *f
	c.buf, c.out = bytes.Clone(f.buf), bytes.Clone(f.out)
	return &c
}

func (f *foreign) Want() int {
	switch n := len(f.buf); {
	case f.done || f.err != nil:
		return 0
	case n < mpa.StartupHeaderLen:
		return mpa.StartupHeaderLen - n
	default:
		return mpa.StartupHeaderLen + int(binary.BigEndian.Uint16(f.buf[18:])) - n
	}
}

func (f *foreign) Input(_ time.Time, b []byte) (taken int, err error) {
	for taken < len(b) && f.Want() > 0 {
		n := min(f.Want(), len(b)-taken)
		f.buf, taken = append(f.buf, b[taken:taken+n]...), taken+n
		if len(f.buf) >= mpa.StartupHeaderLen {
			f.judge()
		}
	}
	return taken, f.err
}

func (f *foreign) judge() {
	q := mpa.StartupFrame(f.buf)
	switch {
	case q.Key() != mpa.KeyRequest:
		f.err = f.fails(mpa.FailureKey)
	case q.Rev() != 1:
		f.err = f.fails(mpa.FailureRevision)
	case f.Want() == 0:
		f.done = true
		reply := mpa.StartupFields{Key: mpa.KeyReply, C: q.C(), S: q.S() && f.repeats, Rev: 1}
		f.out = frame(reply)
		f.neg = mpa.Negotiated{
			Role: mpa.RoleResponder, Dialect: mpa.DialectRFC5044, Revision: 1, PeerRevision: 1,
			DDPVersion: 1, RDMAPVersion: 1,
			MarkersSend: q.M(), CRC: q.C(),
		}
	}
}

func (f *foreign) fails(kind mpa.Failure) error {
	return &mpa.StartupError{Role: mpa.RoleResponder, Failure: kind,
		Err: &mpa.Error{Code: mpa.CodeStartupFrame, Hint: "of another make"}}
}

func (f *foreign) Output() []byte {
	b := f.out
	f.out = nil
	return b
}

func (f *foreign) Done() bool                 { return f.done }
func (f *foreign) Negotiated() mpa.Negotiated { return f.neg }

func (f *foreign) Deadline() time.Time {
	if f.done || f.err != nil {
		return time.Time{}
	}
	return epoch.Add(mpa.DefaultRequestTimeout)
}

func (f *foreign) HandleTimeout(now time.Time) error {
	if f.Deadline().IsZero() || now.Before(f.Deadline()) {
		return nil
	}
	f.err = f.fails(mpa.FailureTimeout)
	return f.err
}

func (f *foreign) GiveUp(time.Time, error) error {
	f.err = f.fails(mpa.FailureTimeout)
	return f.err
}

func (f *foreign) PeerClosed(error) error {
	if f.err == nil {
		f.err = f.fails(mpa.FailureClosed)
	}
	return f.err
}

// party is one end of a pair: an Initiator, a Responder or a foreign Responder. Ends of one
// name are not told apart.
type party struct {
	name    string
	offer   *mpa.Offer
	cfg     mpa.ResponderConfig
	foreign *foreign
}

func initiating(name string, o mpa.Offer) party           { return party{name: name, offer: &o} }
func responding(name string, c mpa.ResponderConfig) party { return party{name: name, cfg: c} }
func message(n int) mpa.Offer {
	return mpa.Offer{Dialect: startKey, Messages: true, PrivateData: bytes.Repeat([]byte("x"), n)}
}

const (
	shortMessage = "Initiator with a short private data message"
	longMessage  = "Initiator with a long private data message"
	anyMessage   = "Initiator with a private data message"
	keyReader    = "Responder that looks for a key"
	readsHeader  = "Responder that reads 20 bytes"
)

var (
	initiatingParties = []party{
		initiating("Initiator of RFC 6581", mpa.Offer{}),
		initiating("Initiator of RFC 5044", mpa.Offer{Dialect: rfc5044}),
		initiating("Initiator with the Rtr frame", mpa.Offer{Dialect: rtr2007}),
		initiating("Initiator with revision 0", mpa.Offer{Kind: rdmac}),
		initiating("Initiator with revision 0", mpa.Offer{Dialect: revision0}),
		initiating("non-permissive Initiator", mpa.Offer{Kind: nonperm, Dialect: rfc5044}),
		initiating("Initiator with a Start Key", mpa.Offer{Dialect: startKey}),
		initiating(shortMessage, message(5)),
		initiating(longMessage, message(30)),
	}
	respondingParties = []party{
		responding(keyReader, mpa.ResponderConfig{}),
		responding(keyReader, mpa.ResponderConfig{Dialects: mpa.Dialects()}),
		responding("Responder that takes private data messages", mpa.ResponderConfig{Messages: true}),
		responding("RDMAC Responder", mpa.ResponderConfig{Kind: rdmac}),
		responding("non-permissive Responder", mpa.ResponderConfig{Kind: nonperm}),
		responding("non-permissive Responder", mpa.ResponderConfig{Kind: nonperm, Dialects: []mpa.Dialect{rfc5044}}),
		{name: readsHeader, foreign: &foreign{}},
		{name: "Responder that repeats reserved bits", foreign: &foreign{repeats: true}},
	}
)

// row names a pair in docs/dev/dialects.md, where ends that come to the same have one name.
func row(a, b party, how string) string {
	one, other := a.name, b.name
	switch messages := a.offer.Messages; {
	case a.offer.Dialect == startKey && !messages && b.foreign != nil:
		other = readsHeader
	case messages && b.offer != nil:
		one, other = anyMessage, anyMessage
	case messages && b.cfg.Messages:
		one = anyMessage
	case messages:
		other = keyReader
	}
	return one + " | " + other + " | " + how
}

// meet returns the beginning of a connection between two ends.
func meet(t *testing.T, a, b party) *node {
	t.Helper()
	v := &virtual{now: epoch, i: &end{first: fpduOfInitiator}, r: &end{first: fpduOfResponder}}
	start := func(o *mpa.Offer) (machine, []byte) {
		i, err := mpa.NewInitiator(*o)
		if err != nil {
			t.Fatal(err)
		}
		return i, i.Start(epoch)
	}
	v.i.m, v.i.sent = start(a.offer)
	switch {
	case b.offer != nil:
		v.r.m, v.r.sent = start(b.offer)
	case b.foreign != nil:
		v.r.m = b.foreign.copy()
	default:
		r := mpa.NewResponder(b.cfg)
		r.Start(epoch)
		v.r.m = r
	}
	return &node{virtual: v, deaf: map[string]bool{}, patience: new(scenario).patience()}
}

// misunderstandings returns how two ends that keep the rules fail all the same, so that no
// end can say why, or none can help it. Without a fault:
//   - both come up, and do not agree;
//   - a startup frame is taken for an FPDU;
//   - nothing but a timeout ends it;
//   - both see a revision that they do not have, and a fallback leads to no other.
//
// With a fault, the Initiator is told of a rejection, and the Responder has accepted.
func misunderstandings(s *search) (how []string) {
	all := strings.Join(s.wrong, "\n")
	switch {
	case strings.Contains(all, "has got"):
		how = append(how, "a frame is taken for an FPDU")
	case strings.Contains(all, "the two ends disagree"):
		how = append(how, "both come up")
	}
	for _, n := range s.finals {
		_, rejected := n.i.err.(*mpa.RejectError)
		switch {
		case n.faults && rejected && n.decided && !n.rejected:
			how = append(how, "a rejection that may be none")
		case n.faults:
		case failedLate(n.i.err) || failedLate(n.r.err):
			how = append(how, "a timeout")
		case failedBy(n.i.err, mpa.FailureRevision):
			how = append(how, "two revisions")
		}
	}
	slices.Sort(how)
	return slices.Compact(how)
}

func failedBy(err error, f mpa.Failure) bool {
	var s *mpa.StartupError
	return errors.As(err, &s) && s.Failure == f
}

// TestMisunderstandings searches all pairs of ends of the known kinds for those that both
// keep the rules and do not understand each other, and compares them with the list in
// docs/dev/dialects.md.
//
// Proves Q03, K02, K07, T01, N03.
func TestMisunderstandings(t *testing.T) {
	found := map[string]bool{}
	for k, a := range initiatingParties {
		for _, b := range slices.Concat(respondingParties, initiatingParties[k:]) {
			s := search{class: &class{name: fmt.Sprintf("%s and %s", a.name, b.name)}}
			s.run(meet(t, a, b))
			for _, how := range misunderstandings(&s) {
				found[row(a, b, how)] = true
			}
		}
	}
	if diff := cmp.Diff(listed(t), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("docs/dev/dialects.md and the search (-listed +found):\n%s", diff)
	}
}

// listed returns the pairs in docs/dev/dialects.md, and how each ends.
func listed(t *testing.T) (rows []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/dev/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) == 4 && cells[0] != "one end" {
			rows = append(rows, strings.Join(cells[:3], " | "))
		}
	}
	slices.Sort(rows)
	return rows
}
