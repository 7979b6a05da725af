package mpa_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// exploreSeed names the seed of a sample that TestUnmerged is to take again.
const exploreSeed = "IWARP_EXPLORE_SEED"

// A structure is all of a scenario that decides in which ways its connections can end. A class stands for all
// scenarios of its structure: other markers, CRCs, depths, private data and timeouts make no other way.
type structure struct {
	first          mpa.Dialect
	message        int         // bytes of the message in place of the first frame, as far as they matter; 0: none
	takesMessages  bool        // the Responder may take what arrives for a message
	served, answer mpa.Dialect // 0: none
	decision       decision
	takesVersion0  bool // the Initiator takes an answer of revision 0
	hasVersion1    bool // the Responder can say so to an Initiator of revision 0
	up, terminates bool // without a fault
	waitI, waitR   bool // without a limit
	sooner         int  // whose patience ends first, where nothing else can
}

// structure returns that of a scenario.
func (s *scenario) structure() structure {
	is := structure{
		first: s.dialect(), takesVersion0: can(s.offer.Kind, 0), hasVersion1: can(s.cfg.Kind, 1),
		takesMessages: s.cfg.Messages && s.serves(startKey),
		waitI:         s.offer.Timeout < 0, waitR: s.cfg.Timeout < 0,
	}
	if s.message() {
		is.message = 1
		if !is.takesMessages {
			is.message = min(2+len(s.offer.PrivateData), mpa.KeyLen+1)
			is.sooner = cmp.Compare(s.patience().initiator, s.patience().responder)
		}
	}
	is.served = s.served()
	w := s.outcome()
	if is.up = w.up; is.served == 0 || s.message() && !is.takesMessages {
		return is
	}
	if is.decision = s.decision; is.decision != accepts {
		return is
	}
	if is.answer = s.answered(); is.answer == 0 {
		is.decision = rejects
	}
	is.terminates = is.up && is.answer == rfc6581 && (s.unmatched() || s.short())
	return is
}

// unmatched reports whether the ends have no RTR indication in common, where one is needed.
func (s *scenario) unmatched() bool {
	offered, supported := kinds(s.offer.RTR), kinds(s.answer.RTR)
	return !s.offer.ClientServer && offered&supported == 0
}

// short reports whether the Initiator's IRD cannot grow to the ORD that the Reply insists on.
func (s *scenario) short() bool {
	insists := s.insist != 0 && s.insist != unnegotiated && s.offer.IRD != unnegotiated
	return insists && s.insist > max(s.offer.IRD, s.offer.MaxIRD)
}

// plain returns a scenario of the same structure that has nothing else.
func (s *scenario) plain() (p scenario) {
	p.offer = mpa.Offer{Dialect: s.dialect(), Messages: s.offer.Messages, Kind: s.offer.Kind}
	p.cfg = mpa.ResponderConfig{Dialects: s.cfg.Dialects, Messages: s.cfg.Messages, Kind: s.cfg.Kind}
	p.offer.Timeout, p.cfg.Timeout = plainLimit(s.offer.Timeout), plainLimit(s.cfg.Timeout)
	p.answer.Kind, p.decision = s.answer.Kind, s.decision
	is := s.structure()
	switch {
	case is.message > 1:
		p.offer.PrivateData = make([]byte, is.message-2)
		p.offer.Timeout, p.cfg.Timeout = s.offer.Timeout, s.cfg.Timeout
	case is.decision == rejects:
		p.decision = rejects
	case is.terminates:
		p.offer.RTR, p.answer.RTR = writes, reads
	}
	return p
}

func plainLimit(d time.Duration) time.Duration { return min(d, 0) }

// A verdict is in which ways a search has ended, and what became of it without a fault.
type verdict struct{ Regular, All string }

// explored returns the verdict on a scenario.
func explored(t *testing.T, c *class) verdict {
	t.Helper()
	s := search{class: c}
	s.run(c.firstState(t))
	ends := func(all []*node) string {
		var texts []string
		for _, n := range all {
			texts = append(texts, n.i.became()+"/"+n.r.became())
		}
		slices.Sort(texts)
		return strings.Join(slices.Compact(texts), "\n")
	}
	if len(s.ends) == 1 {
		c.judge(t, s.ends[0].virtual, c.outcome())
	}
	for _, wrong := range s.wrong {
		t.Error(wrong)
	}
	return verdict{ends(s.ends), ends(s.finals)}
}

// became says how an end has ended.
func (e *end) became() string {
	var startup *mpa.StartupError
	var rejection *mpa.RejectError
	switch {
	case errors.As(e.err, &startup):
		return fmt.Sprintf("%v, fallback %v", startup.Failure, startup.Fallback)
	case errors.As(e.err, &rejection):
		return fmt.Sprintf("rejected, by closing %v", rejection.Closed)
	case e.err != nil:
		return e.err.Error()
	}
	return fmt.Sprintf("open %v, over %v", e.open, e.over)
}

// TestUnmerged takes a random sample of all scenarios, whose values no class has, goes through all their
// states as TestExplore does, and compares the verdict with that on the class of the same structure, or on a
// plain scenario of it. With IWARP_ALL the sample is large.
func TestUnmerged(t *testing.T) {
	t.Parallel() // with TestExplore
	seed, n := int(rand.Int32()), 20
	if text := os.Getenv(exploreSeed); text != "" {
		var err error
		if seed, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	if testrig.Everything() {
		n = 1500
	}
	t.Logf("%s=%d", exploreSeed, seed)
	legal := anyScenario().Filter(func(s scenario) bool { return s.legal() })
	byStructure, verdicts := map[structure]*class{}, map[structure]verdict{}
	for k := range classes {
		byStructure[classes[k].structure()] = &classes[k]
	}
	for k := range n {
		c := class{fmt.Sprintf("sample %d", k), legal.Example(seed + k)}
		is := c.structure()
		like := byStructure[is]
		if like == nil {
			like = &class{"plain " + c.name, c.plain()}
			byStructure[is] = like
		}
		want, known := verdicts[is]
		if !known {
			want = explored(t, like)
			verdicts[is] = want
		}
		if diff := gocmp.Diff(want, explored(t, &c)); diff != "" {
			t.Errorf("%s, %+v, is not as %q: %s", c.name, c.scenario, like.name, diff)
		}
	}
}
