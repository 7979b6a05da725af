package probe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A Match is how much a peer behaves like a known implementation.
type Match struct {
	Name   string `json:"name"`
	Preset string `json:"preset"`
	// Same and Compared count the features that are known of it.
	Same     int `json:"same"`
	Compared int `json:"compared"`
	// Differences say what the peer does otherwise.
	Differences []string `json:"differences,omitempty"`
}

// enough reports whether so many features were compared that a share of them says something.
func (m Match) enough() bool { return m.Compared >= 4 }

// near reports whether the likeness is worth a preset: enough features were
// compared, and at most one in five differs.
func (m Match) near() bool { return m.enough() && 5*(m.Compared-m.Same) <= m.Compared }

// compare puts the peer first of whose known features a larger share is the same, and of two with equal shares the
// better known one. Those of which too little could be compared come last.
func compare(a, b Match) int {
	if a.enough() != b.enough() {
		return wording.Bit(b.enough()) - wording.Bit(a.enough())
	}
	return cmp.Or(cmp.Compare(b.Same*max(a.Compared, 1), a.Same*max(b.Compared, 1)),
		cmp.Compare(b.Compared, a.Compared))
}

// features are what a peer's answers come to, by name.
func (r *Report) features() map[string]string {
	f := map[string]string{}
	if r.Bits.Reserved.replied() {
		f["reserved bits"] = wording.If(r.EchoesReserved, "echoed", "zero")
	}
	v := &r.Revisions
	for name, q := range map[string]*Question{
		"revision 1": v.One, "SMB Direct": v.OneSMBDirect, "revision 2 A=1": v.TwoPeerToPeer,
		"revision 2 A=0":       v.TwoClientServer,
		"revision 2 without S": v.TwoPlain, "revision 3": v.ThreeEnhanced,
		"revision 0 with markers": v.Zero, "Start Key": v.StartKey,
		"markers": r.Bits.Markers, "in two parts": r.InTwo, "FPDU glued to the Request": r.Glued,
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
		f["no CRC"] = q.Outcome.String()
		if r.takes(q) {
			f["no CRC"] = setting("C", q.reply.C())
		}
	}
	if q := r.NoRequest; q != nil {
		f["no Request"] = wording.Seconds(q.took(), 0) + " s"
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
		if d.Depths != nil {
			f["depths "+d.Asked.String()] = depthValue(d.IRD, d.ORD)
		}
	}
}

// takes reports whether the implementation took a Request. Where its consumer rejects
// all Requests, a Reply with R=1 shows nothing.
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
	case q.replied() && q.Then.Refused():
		return fmt.Sprintf("revision %d, then closed", q.reply.Rev())
	case r.takes(q):
		return fmt.Sprintf("revision %d", q.reply.Rev())
	}
	return q.Outcome.String()
}

// A known implementation, and the values that each feature of it may have. Features
// that nobody knows of it are missing.
type known struct {
	name, preset string
	features     map[string][]string
}

// everybody returns the implementations that are known: ours, and those of the table
// of peers.
func everybody() []known {
	all := []known{{"iwarp", "", ourFeatures()}}
	for _, p := range peers.All() {
		all = append(all, known{p.Title, p.Name, featuresOf(&p)})
	}
	return all
}

// ourFeatures are those of our endpoint with its defaults.
func ourFeatures() map[string][]string {
	f := map[string][]string{"Start Key": {Accepted.String()}, "reserved bits": {"zero"},
		"FPDU glued to the Request": ended}
	for rev, names := range [][]string{
		{"revision 0 with markers"},
		{"revision 1"},
		{"revision 2 A=1", "revision 2 A=0", "revision 3", "markers", "in two parts"},
	} {
		for _, name := range names {
			f[name] = answered(rev)
		}
	}
	for offered, kinds := range map[mpa.RTR]mpa.RTR{
		mpa.RTRWrite: mpa.RTRWrite, mpa.RTRRead: mpa.RTRRead, mpa.RTRSend: mpa.RTRSend, everyRTR: everyRTR, 0: everyRTR,
	} {
		f["RTR "+offered.String()] = []string{kinds.String()}
	}
	f["private data"] = []string{fmt.Sprint(mpa.MaxEnhancedPrivateData)}
	f["depths "+mpa.NoNegotiation.String()] = []string{depthValue(mpa.NoNegotiation, mpa.NoNegotiation)}
	return f
}

// setting is the value of a bit, such as "C=1".
func setting(bit string, set bool) string {
	return bit + map[bool]string{true: "=1", false: "=0"}[set]
}

// ended is the feature of a question after which the peer ends the connection.
var ended = []string{Closed.String(), Reset.String()}

// waits is that of half a frame: the peer waits for the rest, and may lose its
// patience first.
var waits = []string{Silent.String(), Closed.String(), Reset.String()}

// answered is that of a question that is answered in a revision.
func answered(rev int) []string { return []string{fmt.Sprintf("revision %d", rev)} }

func depthValue(ird, ord mpa.Depth) string { return fmt.Sprintf("%v/%v", ird, ord) }

// A row collects what is known of a peer.
type row struct {
	*peers.Peer
	features map[string][]string
}

// featuresOf returns what is known of a peer. A feature is left out if a field that it
// rests on is assumed.
func featuresOf(p *peers.Peer) map[string][]string {
	r := row{p, map[string][]string{}}
	r.addRevisions()
	r.addFrames()
	r.addLimits()
	if p.Highest >= 2 {
		r.addNegotiated()
	}
	return r.features
}

func (r *row) add(name string, values []string, restsOn ...string) {
	if r.Knows(restsOn...) {
		r.features[name] = values
	}
}

// unless is the feature of a question that the peer may not like.
func unless(end peers.End, rev uint8) []string {
	switch end {
	case peers.Tolerates:
		return answered(int(rev))
	case peers.Rejects:
		return []string{Rejected.String()}
	}
	return ended
}

// addRevisions adds the answers by revision.
func (r *row) addRevisions() {
	r.add("revision 3", ended, "BadRevision")
	r.add("revision 1", answered(1))
	if r.SMBDirect {
		r.add("revision 1", ended)
		r.add("SMB Direct", answered(1))
	}
	if r.Lowest > 0 {
		r.add("revision 0 with markers", ended, "Lowest", "BadRevision")
	}
	switch {
	case r.Highest < 2:
		for _, name := range []string{"revision 2 A=1", "revision 2 A=0", "revision 2 without S"} {
			r.add(name, ended, "BadRevision")
		}
		return
	case r.IgnoresS:
		r.add("revision 2 without S", unless(r.ShortRequest, 2), "IgnoresS", "ShortRequest")
	default:
		r.add("revision 2 without S", answered(2), "IgnoresS")
	}
	r.add("revision 2 A=1", answered(2))
	r.add("revision 2 A=0", unless(r.NotPeerToPeer, 2), "NotPeerToPeer")
}

// addFrames adds the answers to frames that are out of the ordinary.
func (r *row) addFrames() {
	r.add("Start Key", waits, "Split")
	r.add("markers", unless(r.Markers, r.Highest), "Markers")
	r.add("in two parts", unless(r.Split, r.Highest), "Split")
	r.add("no CRC", []string{setting("C", r.AsksCRC)})
	if r.NoCRC != peers.Tolerates {
		r.add("no CRC", ended, "NoCRC")
	}
	if r.Glued != peers.Tolerates {
		r.add("FPDU glued to the Request", ended, "Glued")
	}
	if r.EchoesBits {
		r.add("reserved bits", []string{"echoed"}, "EchoesBits")
	}
}

// addLimits adds the limits of bytes and time.
func (r *row) addLimits() {
	r.add("private data", []string{fmt.Sprint(r.MaxPrivateData(r.Highest))}, "MaxPDLength")
	if r.RequestTimeout > 0 {
		r.add("no Request", []string{wording.Seconds(r.RequestTimeout, 0) + " s"}, "RequestTimeout")
	}
}

// addNegotiated adds what enhanced Replies say.
func (r *row) addNegotiated() {
	for _, offered := range offers {
		r.add("RTR "+offered.String(), []string{r.AnswerRTR(offered).String()})
	}
	for _, asked := range []mpa.Depth{mpa.MaxDepth, mpa.NoNegotiation} {
		ird, ord := r.AnswerDepths(r.MaxIRD, r.MaxORD, asked, asked)
		var restsOn []string
		if ird != mpa.NoNegotiation {
			restsOn = []string{"MaxIRD", "MaxORD"}
		}
		r.add("depths "+asked.String(), []string{depthValue(ird, ord)}, restsOn...)
	}
}

// resemblance compares features with those of all known peers.
func resemblance(f map[string]string) (all []Match) {
	for _, k := range everybody() {
		m := Match{Name: k.name, Preset: k.preset}
		for _, name := range slices.Sorted(maps.Keys(k.features)) {
			got, ok := f[name]
			if !ok {
				continue
			}
			m.Compared++
			if slices.Contains(k.features[name], got) {
				m.Same++
				continue
			}
			m.Differences = append(m.Differences, fmt.Sprintf("%s: %s, expected %s",
				name, got, strings.Join(k.features[name], " or ")))
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, compare)
	return all
}
