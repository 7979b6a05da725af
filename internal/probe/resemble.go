package probe

import (
	"fmt"
	"slices"
	"strings"
)

// A Match is how much a peer behaves like a known implementation.
type Match struct {
	Name   string `json:"name"`
	Preset string `json:"preset"`
	// Same and Compared count the features that are known of it.
	Same     int `json:"same"`
	Compared int `json:"compared"`
	// Differences say where it differs.
	Differences []string `json:"differences,omitempty"`
}

// near reports whether the likeness is worth a preset: at most one in five features
// differs, and there is more than a handful of them.
func (m Match) near() bool { return m.Compared >= 4 && 5*(m.Compared-m.Same) <= m.Compared }

// score weighs a difference as two likenesses: of peers that are alike, the one that
// more is known of comes first.
func (m Match) score() int { return m.Same - 2*(m.Compared-m.Same) }

// features are what a peer's answers are boiled down to, by name.
func (r *Report) features() map[string]string {
	f := map[string]string{}
	v := &r.Revisions
	for name, q := range map[string]*Question{
		"revision 1": v.One, "revision 2 A=1": v.TwoPeerToPeer, "revision 2 A=0": v.TwoClientServer,
		"revision 3": v.ThreeEnhanced, "revision 0 with markers": v.Zero, "Start Key": v.StartKey,
		"markers": r.Bits.Markers, "FPDU behind the Request": r.Glued,
	} {
		if q != nil {
			f[name] = q.feature()
		}
	}
	for _, a := range r.RTR {
		if a.Answered != "" {
			f["RTR "+a.Offered] = a.Answered
		}
	}
	for _, d := range r.Depths {
		if d.IRD != "" {
			f["depths "+d.Asked] = d.IRD + "/" + d.ORD
		}
	}
	if r.PrivateData.Allowed > 0 {
		f["private data"] = fmt.Sprint(r.PrivateData.Most)
	}
	f["reserved bits"] = map[bool]string{true: "echoed", false: "zero"}[r.EchoesReserved]
	return f
}

// feature is a question's outcome, with the revision of a Reply.
func (q *Question) feature() string {
	switch {
	case q.replied() && q.Then != "" && Outcome(q.Then).Refused():
		return fmt.Sprintf("revision %d, then closed", q.reply.Rev())
	case q.Outcome == Accepted && q.replied():
		return fmt.Sprintf("revision %d", q.reply.Rev())
	}
	return string(q.Outcome)
}

// a known implementation, and those of its features that are known. A feature has
// alternatives, separated by " or ".
type known struct {
	name, preset string
	features     map[string]string
}

const ended = "closed or reset"

// peers are the implementations that were measured (iwarp, siw) or whose sources
// were read.
var peers = []known{
	{"iwarp", "", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 2 A=0": "revision 2", "revision 3": "revision 2",
		"revision 0 with markers": "revision 0", "Start Key": "accepted", "markers": "revision 2",
		"RTR write": "write", "RTR read": "read", "RTR send": "send", "RTR send|write|read": "write|read", "RTR none": "send|write|read",
		"reserved bits": "zero", "private data": "508", "depths not negotiated": "not negotiated/not negotiated",
	}},
	{"siw (Linux)", "siw", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 2 A=0": "revision 2", "revision 3": ended, "Start Key": ended,
		"markers": "rejected", "RTR write": "write", "RTR send|write|read": "write", "RTR none": "write",
		"reserved bits": "echoed", "private data": "252", "FPDU behind the Request": ended, "depths not negotiated": "128/128",
	}},
	{"cxgb4 (Chelsio, Linux)", "cxgb4", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 3": ended, "markers": "revision 2",
		"RTR write": "read", "RTR read": "read", "RTR send": "read", "private data": "252", "FPDU behind the Request": ended,
	}},
	{"iw_cxgbe (Chelsio, FreeBSD)", "freebsd", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": ended, "revision 2 A=0": ended, "revision 3": ended,
		"markers": "revision 1", "private data": "256", "FPDU behind the Request": ended,
	}},
	{"irdma (Intel)", "irdma", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 2 A=0": ended, "revision 0 with markers": ended,
		"RTR write": "write", "RTR read": "read", "RTR send|write|read": "read",
	}},
	{"qedr (Marvell)", "qedr", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2",
		"RTR send": "send", "RTR send|write|read": "send|write|read", "RTR none": "send|write|read",
	}},
}

// resemblance compares features with those of all known peers.
func resemblance(f map[string]string) (all []Match) {
	for _, k := range peers {
		m := Match{Name: k.name, Preset: k.preset}
		for _, name := range sortedKeys(k.features) {
			got, ok := f[name]
			if !ok {
				continue
			}
			m.Compared++
			if slices.Contains(strings.Split(k.features[name], " or "), got) {
				m.Same++
				continue
			}
			m.Differences = append(m.Differences, fmt.Sprintf("%s: %s, and not %s", name, got, k.features[name]))
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b Match) int { return b.score() - a.score() })
	return all
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
