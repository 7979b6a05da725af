package matrix

import (
	"fmt"
	"slices"
	"strings"
)

// The sources of facts.
const (
	byInitiator = "initiator"
	byResponder = "responder"
	onWire      = "wire"
)

// facts are what was found in a row: by key, what each source says.
type facts struct {
	keys []string // in the order in which they came
	said map[string][]saying
}

type saying struct{ who, value string }

// outcome is the key of the end for the initiator.
const outcome = "outcome"

// say notes what a source says.
func (f *facts) say(who, key, value string) {
	if f.said == nil {
		f.said = map[string][]saying{}
	}
	if _, known := f.said[key]; !known {
		f.keys = append(f.keys, key)
	}
	f.said[key] = append(f.said[key], saying{who, value})
}

func (f *facts) sayf(who, key, format string, args ...any) {
	f.say(who, key, fmt.Sprintf(format, args...))
}

// agreed reports whether all sources of a fact say the same.
func (f *facts) agreed(key string) bool {
	for _, s := range f.said[key] {
		if s.value != f.said[key][0].value {
			return false
		}
	}
	return true
}

// value returns what all sources say, or what each says if they differ, or "unknown".
func (f *facts) value(key string) string {
	switch said := f.said[key]; {
	case len(said) == 0:
		return "unknown"
	case f.agreed(key):
		return said[0].value
	default:
		var each []string
		for _, s := range said {
			each = append(each, s.value+"@"+s.who)
		}
		return strings.Join(each, "+")
	}
}

// up reports whether any source says that the connection came up.
func (f *facts) up() bool {
	return slices.ContainsFunc(f.said[outcome], func(s saying) bool { return s.value == "up" })
}

// cell returns what was found, written like a cell of a figure.
func (f *facts) cell() string {
	if end := f.value(outcome); end != "up" {
		return end
	}
	return "V=" + f.value("V") + " M=" + f.value("M")
}

// A demand is one fact that is demanded.
type demand struct {
	key    string
	values []string // of which one
}

// parseDemands parses a text of demands.
func parseDemands(text string) []demand {
	var all []demand
	for _, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			key, value = outcome, word
		}
		all = append(all, demand{key, strings.Split(value, ",")})
	}
	return all
}

func (d demand) String() string {
	if d.key == outcome {
		return strings.Join(d.values, ",")
	}
	return d.key + "=" + strings.Join(d.values, ",")
}

// met reports whether a value is one of those demanded.
func (d demand) met(value string) bool {
	return slices.ContainsFunc(d.values, func(want string) bool { return matches(want, value) })
}

// matches compares two values, part by part; "*" is any.
func matches(want, got string) bool {
	if want == "*" {
		return got != "unknown"
	}
	wants, gots := strings.Split(want, "/"), strings.Split(got, "/")
	if len(wants) != len(gots) {
		return false
	}
	for i := range wants {
		if wants[i] != "*" && wants[i] != gots[i] {
			return false
		}
	}
	return true
}

// judge compares facts with demands. It returns the facts that are demanded, and
// what is wrong with them or with others.
func judge(demands []demand, f *facts) (got string, differences []string) {
	var words []string
	for _, d := range demands {
		value := f.value(d.key)
		words = append(words, demand{d.key, []string{value}}.String())
		if !d.met(value) {
			differences = append(differences, fmt.Sprintf("demanded %v, got %s", d, words[len(words)-1]))
		}
	}
	for _, key := range f.keys {
		if !f.agreed(key) && !slices.ContainsFunc(demands, func(d demand) bool { return d.key == key }) {
			differences = append(differences, "not the same everywhere: "+key+"="+f.value(key))
		}
	}
	return strings.Join(words, " "), differences
}

// text joins demands to a text.
func text(demands []demand) string {
	words := make([]string, len(demands))
	for i, d := range demands {
		words[i] = d.String()
	}
	return strings.Join(words, " ")
}

// demandsFact reports whether a row demands anything of a fact.
func (r *Row) demandsFact(key string) bool {
	return slices.ContainsFunc(r.demands(), func(d demand) bool { return d.key == key })
}

// everySCTP are the demands of every row over SCTP, and in the end of those that do not fail before there is an
// Initiate.
func everySCTP(first demand, add func(key, value string)) {
	add("chunks", "as-they-should")
	add("ssn", "gapless/gapless")
	add("indication", "1/1")
	if first.values[0] != "invalid" {
		add("closed", "shutdown")
	}
}

// demands returns the demands of a row, with those that every row has.
func (r *Row) demands() []demand {
	all := parseDemands(r.Demanded)
	add := func(key, value string) {
		if !slices.ContainsFunc(all, func(d demand) bool { return d.key == key }) {
			all = append(all, demand{key, []string{value}})
		}
	}
	if r.overSCTP() {
		everySCTP(all[0], add)
	}
	if up := (demand{outcome, []string{"up"}}); len(all) == 0 || all[0].String() != up.String() {
		return all
	}
	if !r.Initiator.byHand() && !r.Responder.byHand() {
		add("data", "swr/swr")
	}
	if r.overSCTP() {
		add("last", "terminate/terminate")
	} else {
		add("closed", "fin")
	}
	return all
}
