package mpa_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// product are the values of the product: the edges of what 14 bits can say, and some
// between.
var product = struct {
	depths, bounds []mpa.Depth
}{
	depths: []mpa.Depth{0, 1, 2, 7, 32, 0x3ffd, mpa.MaxDepth, mpa.NoNegotiation},
	bounds: []mpa.Depth{0, 8, mpa.MaxDepth},
}

// productOffers are all Offers of the product, productAnswers all Answers.
func productOffers() (all []mpa.Offer) {
	for _, a := range productAnswers() {
		if a.AllRTR {
			continue
		}
		all = append(all, a.Offer())
		if a.RTR == 0 {
			o := a.Offer()
			o.ClientServer = true
			all = append(all, o)
		}
	}
	return all
}

func productAnswers() (all []mpa.Answer) {
	for _, ird := range product.depths {
		for _, ord := range product.depths {
			for _, most := range product.bounds {
				for rtr := range mpa.RTR(16) {
					all = append(all, mpa.Answer{IRD: ird, ORD: ord, MaxIRD: most, RTR: rtr & 7, AllRTR: rtr&8 != 0})
				}
			}
		}
	}
	return all
}

// established is one pair of the product: what each end wanted, what the frames said, and
// what each end has put into effect.
type established struct {
	offer          mpa.Offer
	answer         mpa.Answer
	request, reply mpa.Enhanced
	i, r           mpa.Negotiated
}

// A rule is one sentence of RFC 6581 and what it asks of a pair.
type rule struct {
	text  string
	holds func(e *established) bool
}

const left = mpa.NoNegotiation // to the ULP

// able is what an end can do in either role: the endpoint can send each kind of RTR
// indication, and take it.
const able = mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead

// kinds is what an end supports: what its consumer has left of what it can do.
func kinds(set mpa.RTR) mpa.RTR {
	if set == 0 {
		return able
	}
	return set
}

func (e *established) offered() mpa.RTR   { return kinds(e.offer.RTR) }
func (e *established) supported() mpa.RTR { return kinds(e.answer.RTR) }
func (e *established) common() mpa.RTR    { return e.request.RTR() & e.reply.RTR() }

// rules6581 are the rules of RFC 6581, sections 9.1 and 9.2, for a Request and its Reply
// and for what both ends do then.
var rules6581 = []rule{
	{"9.2: A is 1 for the peer-to-peer model, and B, C and D for each option supported",
		func(e *established) bool {
			return e.offer.ClientServer || e.request.A && e.request.RTR() == e.offered()
		}},
	{"9.2: the responder names each option of the Request that it supports",
		func(e *established) bool {
			return !e.reply.A || e.request.RTR()&e.supported()&^e.reply.RTR() == 0
		}},
	{"a Send, which shows on a queue that consumers use, is sent only where nothing else is common",
		func(e *established) bool { return e.i.RTR != mpa.RTRSend || e.common() == mpa.RTRSend }},
	{"9.2: if A is 0, B, C and D MUST be 0",
		func(e *established) bool {
			free := func(f mpa.Enhanced) bool { return f.A || !f.B && !f.C && !f.D }
			return free(e.request) && free(e.reply)
		}},
	{"9.2: the responder MUST set A to what the Request has",
		func(e *established) bool { return e.reply.A == e.request.A }},
	{"9.2: both ends have the model that A says",
		func(e *established) bool { return e.i.PeerToPeer == e.request.A && e.r.PeerToPeer == e.request.A }},
	{"9.2: the responder names options that it supports, and at least one",
		func(e *established) bool {
			return !e.reply.A || e.reply.RTR() != 0 && e.reply.RTR()&^e.supported() == 0
		}},
	{"9.2: the initiator MUST generate one of the negotiated RTR indications",
		func(e *established) bool {
			return e.common() == 0 || (e.i.RTR == mpa.RTRSend || e.i.RTR == mpa.RTRWrite ||
				e.i.RTR == mpa.RTRRead) && e.i.RTR&^e.common() == 0
		}},
	{"9.2: without a common option the initiator MUST send a Terminate with code 7, and otherwise not",
		func(e *established) bool {
			return (e.i.TerminateCode == mpa.CodeNoMatchingRTR) == (e.request.A && e.common() == 0)
		}},
	{"9.2: A=0: there is no RTR indication",
		func(e *established) bool { return e.request.A || e.i.RTR == 0 && e.r.RTR == 0 }},
	{"9.1: an initiator ORD of 0x3FFF: the responder leaves its IRD unchanged and answers 0x3FFF",
		func(e *established) bool {
			return e.request.ORD != left || e.reply.IRD == left && e.r.IRD == e.answer.IRD
		}},
	{"9.1: an initiator IRD of 0x3FFF: the responder leaves its ORD unchanged and answers 0x3FFF",
		func(e *established) bool {
			return e.request.IRD != left || e.reply.ORD == left && e.r.ORD == e.answer.ORD
		}},
	{"9.1: the responder MUST set its ORD at most to the initiator IRD",
		func(e *established) bool {
			return e.request.IRD == left || e.answer.ORD == left || e.r.ORD <= e.request.IRD
		}},
	{"9.1: the responder's ORD is not lowered further than that",
		func(e *established) bool {
			return e.request.IRD == left || e.answer.ORD == left ||
				e.r.ORD == min(e.answer.ORD, e.request.IRD) && e.reply.ORD == e.r.ORD
		}},
	{"9.1: the responder's IRD is at least the initiator ORD if it has the resources",
		func(e *established) bool {
			return e.request.ORD == left || e.reply.IRD >= min(e.request.ORD, max(e.answer.IRD, e.answer.MaxIRD))
		}},
	{"9.1: the Reply has the IRD that is in effect",
		func(e *established) bool { return e.request.ORD == left || e.reply.IRD == e.r.IRD }},
	{"the responder's IRD keeps within its bound, but for 1 for an RTR Read, and is not lowered",
		func(e *established) bool {
			return e.r.IRD >= e.answer.IRD && e.r.IRD <= max(e.answer.IRD, e.answer.MaxIRD, 1)
		}},
	{"9.1: the initiator MUST set its ORD at most to the responder IRD, and leave it for 0x3FFF",
		func(e *established) bool { return e.i.ORD == min(e.offer.ORD, e.reply.IRD) }},
	{"9.1: the initiator MUST set its IRD at least to the responder ORD, and leave it for 0x3FFF",
		func(e *established) bool {
			if e.reply.ORD == left {
				return e.i.IRD == e.offer.IRD
			}
			return e.i.IRD >= e.reply.ORD && e.i.IRD >= e.offer.IRD
		}},
	{"9.1: code 6 is for an IRD that does not suffice, which a responder that keeps the rules does not cause",
		func(e *established) bool { return e.i.TerminateCode != mpa.CodeInsufficientIRD }},
	{"9.1: no end has more Reads under way than the other takes",
		func(e *established) bool {
			return (e.reply.IRD == left || e.i.ORD <= e.r.IRD) && (e.reply.ORD == left || e.r.ORD <= e.i.IRD)
		}},
	{"9.1: each end passes the other's IRD and ORD to the ULP",
		func(e *established) bool {
			return e.i.PeerIRD == e.reply.IRD && e.i.PeerORD == e.reply.ORD && e.r.PeerIRD == e.request.IRD &&
				e.r.PeerORD == e.request.ORD
		}},
	{"both ends know what was offered and answered",
		func(e *established) bool {
			return e.i.OfferedRTR == e.request.RTR() && e.r.OfferedRTR == e.request.RTR() &&
				e.i.AnsweredRTR == e.reply.RTR() && e.r.AnsweredRTR == e.reply.RTR()
		}},
}

// establish has two machines exchange their frames.
func (e *established) establish() error {
	i, err := mpa.NewInitiator(e.offer)
	if err != nil {
		return err
	}
	r := mpa.NewResponder(mpa.ResponderConfig{})
	r.Start(epoch)
	request := i.Start(epoch)
	if _, err := r.Input(epoch, request); err != nil {
		return err
	}
	reply, err := r.Accept(epoch, e.answer)
	if err != nil {
		return err
	}
	if n, err := i.Input(epoch, reply); err != nil || n != len(reply) || !i.Done() || !r.Done() {
		return fmt.Errorf("took %d of %d bytes: %v", n, len(reply), err)
	}
	e.request, _ = mpa.StartupFrame(request).Enhanced()
	e.reply, _ = mpa.StartupFrame(reply).Enhanced()
	e.i, e.r = i.Negotiated(), r.Negotiated()
	return nil
}

// broken returns the rules that a pair breaks.
func (e *established) broken() (texts []string) {
	for _, r := range rules6581 {
		if !r.holds(e) {
			texts = append(texts, r.text)
		}
	}
	return texts
}

// TestProduct6581 goes through the product of all depths, bounds, models and sets of RTR
// indications of both ends, about 5 million pairs with IWARP_ALL set and a part of them
// without, and holds each to the RFC rule by rule.
//
// Proves E03, E04, E05, E06, E07, E08, E09, E10, E14, E15, E16.
func TestProduct6581(t *testing.T) {
	t.Parallel() // with TestExplore
	offers, answers := productOffers(), productAnswers()
	step := 97 // a prime, so that all values of all settings come up
	if testrig.Everything() {
		step = 1
	}
	tried, failed := 0, 0
	for n := 0; n < len(offers)*len(answers) && failed < 10; n += step {
		e := established{offer: offers[n/len(answers)], answer: answers[n%len(answers)]}
		if err := e.establish(); err != nil {
			t.Fatalf("%+v, %+v: %v", e.offer, e.answer, err)
		}
		if e.offer.ClientServer && e.offer.IRD == left && e.offer.ORD == left {
			// Section 10: nothing enhanced is wanted. [E02]
			if e.i.Dialect != mpa.DialectRFC5044 || e.i.Enhanced {
				t.Errorf("%+v: %+v", e.offer, e.i)
			}
			continue
		}
		tried++
		for _, text := range e.broken() {
			failed++
			t.Errorf("%s: %+v, %+v: Request %v, Reply %v: %+v, %+v",
				text, e.offer, e.answer, e.request, e.reply, e.i, e.r)
		}
	}
	t.Logf("%d pairs of %d", tried, len(offers)*len(answers))
}

// TestProductRules spoils what a pair came to, and expects the rules to see it.
func TestProductRules(t *testing.T) {
	for name, spoil := range map[string]func(e *established){
		"A cleared":        func(e *established) { e.reply.A = false },
		"B, C, D left":     func(e *established) { e.request.A, e.reply.A = false, false },
		"unsupported":      func(e *established) { e.reply.B = true },
		"an option hidden": func(e *established) { e.offer.RTR = 0 },
		"an option not answered": func(e *established) {
			e.request.D, e.offer.RTR, e.answer.RTR = true,
				writes|reads, writes|reads
		},
		"a Send beside a Write":    func(e *established) { e.request.B, e.reply.B, e.i.RTR = true, true, sends },
		"none named":               func(e *established) { e.reply.C = false },
		"two sent":                 func(e *established) { e.i.RTR = mpa.RTRWrite | mpa.RTRRead },
		"code 7":                   func(e *established) { e.i.TerminateCode = mpa.CodeNoMatchingRTR },
		"code 6":                   func(e *established) { e.i.TerminateCode = mpa.CodeInsufficientIRD },
		"ORD above the IRD":        func(e *established) { e.i.ORD = e.reply.IRD + 1 },
		"IRD too low":              func(e *established) { e.i.IRD = e.reply.ORD - 1 },
		"responder's ORD too high": func(e *established) { e.r.ORD = e.request.IRD + 1 },
		"IRD not told":             func(e *established) { e.r.IRD++ },
		"0x3FFF answered":          func(e *established) { e.reply.IRD = left },
		"0x3FFF not answered":      func(e *established) { e.request.ORD = left },
	} {
		e := established{offer: mpa.Offer{IRD: 4, ORD: 7, RTR: mpa.RTRWrite},
			answer: mpa.Answer{IRD: 7, ORD: 4, RTR: mpa.RTRWrite}}
		if err := e.establish(); err != nil || len(e.broken()) > 0 {
			t.Fatalf("%v, %v", err, e.broken())
		}
		if spoil(&e); len(e.broken()) == 0 {
			t.Errorf("%s: no rule is broken", name)
		}
	}
}
