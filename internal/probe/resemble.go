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
	f := map[string]string{"reserved bits": map[bool]string{true: "echoed", false: "zero"}[r.EchoesReserved]}
	v := &r.Revisions
	for name, q := range map[string]*Question{
		"revision 1": v.One, "SMB Direct": v.OneSMBDirect, "revision 2 A=1": v.TwoPeerToPeer, "revision 2 A=0": v.TwoClientServer,
		"revision 2 without S": v.TwoPlain, "revision 3": v.ThreeEnhanced, "revision 0 with markers": v.Zero, "Start Key": v.StartKey,
		"markers": r.Bits.Markers, "in two parts": r.InTwo, "FPDU behind the Request": r.Glued,
	} {
		if q != nil {
			f[name] = r.feature(q)
		}
	}
	if r.rejectsAll() {
		delete(f, "markers") // nobody can tell who rejects them
	}
	r.negotiated(f)
	if q := r.Bits.NoCRC; q != nil {
		f["no CRC"] = string(q.Outcome)
		if r.takes(q) {
			f["no CRC"] = map[bool]string{true: "C=1", false: "C=0"}[q.reply.C()]
		}
	}
	if q := r.NoRequest; q != nil {
		f["no Request"] = fmt.Sprintf("%.0f s", q.Milliseconds/1e3)
	}
	if r.PrivateData.Allowed > 0 {
		f["private data"] = fmt.Sprint(r.PrivateData.Most)
	}
	return f
}

// negotiated adds the features of enhanced Replies.
func (r *Report) negotiated(f map[string]string) {
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
}

// takes reports whether there is a Reply that the implementation, if not its consumer,
// means well: one that rejects all Requests shows nothing by that.
func (r *Report) takes(q *Question) bool {
	return q.replied() && (q.Outcome == Accepted || r.rejectsAll())
}

func (r *Report) rejectsAll() bool {
	q := r.usual()
	return q != nil && q.Outcome == Rejected
}

// feature is a question's outcome, with the revision of a Reply.
func (r *Report) feature(q *Question) string {
	switch {
	case q.replied() && q.Then != "" && Outcome(q.Then).Refused():
		return fmt.Sprintf("revision %d, then closed", q.reply.Rev())
	case r.takes(q):
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

const (
	ended = "closed or reset"
	// waits is for the rest of a frame: the peer may lose its patience first.
	waits = "silent or closed or reset"
)

// peers are the implementations that are known: iwarp; siw, which was measured; and
// others by their drivers' sources, where what a driver leaves to firmware is not to be
// seen, and by MS-SMBD. A feature that a parameter or a consumer changes is not here.
// Each of them differs from each other in some.
var peers = []known{
	{"iwarp", "", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 2 A=0": "revision 2", "revision 3": "revision 2",
		"revision 0 with markers": "revision 0", "Start Key": "accepted", "markers": "revision 2", "in two parts": "revision 2",
		"RTR write": "write", "RTR read": "read", "RTR send": "send", "RTR send|write|read": "write|read", "RTR none": "send|write|read",
		"reserved bits": "zero", "private data": "508", "depths not negotiated": "not negotiated/not negotiated",
		"FPDU behind the Request": "revision 2",
	}},
	{"siw (Linux)", "siw", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 2 A=0": "revision 2", "revision 2 without S": "revision 2",
		"revision 3": ended, "Start Key": waits, "markers": "rejected", "in two parts": "revision 2", "no CRC": "C=0",
		"RTR write": "write", "RTR read": "read", "RTR send": "write", "RTR send|write|read": "write", "RTR none": "write",
		"reserved bits": "echoed", "private data": "252", "FPDU behind the Request": ended,
		"depths 16382": "128/128", "depths not negotiated": "128/128", "no Request": "5 s",
	}},
	{"cxgb4 (Chelsio, Linux)", "cxgb4", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 3": ended, "Start Key": waits, "markers": "revision 2",
		"in two parts": "revision 2", "no CRC": "C=1", "RTR write": "read", "RTR read": "read", "RTR send": "read", "RTR none": "read",
		"private data": "252", "FPDU behind the Request": ended, "depths 16382": "32/32", "no Request": "60 s",
	}},
	{"iw_cxgbe (Chelsio, FreeBSD)", "freebsd", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": ended, "revision 2 A=0": ended, "revision 2 without S": ended,
		"revision 3": ended, "Start Key": waits, "markers": "revision 1", "in two parts": "revision 1", "no CRC": "C=1",
		"private data": "256", "FPDU behind the Request": ended, "no Request": "60 s",
	}},
	{"irdma (Intel)", "irdma", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "revision 2 A=0": ended, "revision 2 without S": ended,
		"revision 0 with markers": ended, "in two parts": ended, "no CRC": "C=1", "private data": "508",
		"RTR write": "write", "RTR read": "read", "RTR send": "read", "RTR send|write|read": "read",
		"depths not negotiated": "not negotiated/not negotiated",
	}},
	{"qedr (Marvell)", "qedr", map[string]string{
		"revision 1": "revision 1", "revision 2 A=1": "revision 2", "no CRC": "C=1",
		"RTR send": "send", "RTR send|write|read": "send|write|read", "RTR none": "send|write|read", "depths 16382": "32/32",
	}},
	{"SMB Direct, revision 1 (Windows)", "windows-v1", map[string]string{
		"revision 1": ended, "SMB Direct": "revision 1", "revision 2 A=1": ended, "revision 2 A=0": ended, "revision 2 without S": ended,
		"revision 3": ended, "no CRC": ended, "private data": "248", "FPDU behind the Request": ended, "no Request": "60 s",
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
