package main

import (
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/hostinfo"
)

// What a ratio is depends on the machine, so of the parts that say what iWARP costs beside others the record keeps what
// other machines had when one measures anew. A later measurement on such a machine replaces what is kept of it.

// copyPart has a part of another record in place of its own, if it is one that is kept of other machines.
func (r *record) copyPart(part string, from *record) {
	switch part {
	case "tools":
		r.CC, r.Rounds, r.Values, r.Missing = from.CC, from.Rounds, from.Values, from.Missing
	case "perf":
		r.Perf = from.Perf
	case "goals":
		r.Goals = from.Goals
	case "floors":
		r.Floors = from.Floors
	case "growth":
		r.Growth = from.Growth
	case "short connections":
		r.Short = from.Short
	case "library":
		r.Library = from.Library
	default:
		return
	}
	delete(r.Measured, part)
	if at, ok := from.Measured[part]; ok {
		r.dated(part, at)
	}
}

// setAside makes room for a part that is about to be measured: what is there stays as that of another machine, if it is
// of another.
func (r *record) setAside(part string, here hostinfo.Machine) {
	for _, other := range r.Elsewhere {
		if other.of(here) {
			other.copyPart(part, new(record))
		}
	}
	if at, ok := r.Measured[part]; ok && !sameMachine(at.Machine, here) {
		i := slices.IndexFunc(r.Elsewhere, func(other *record) bool { return other.of(at.Machine) })
		if i < 0 {
			i = len(r.Elsewhere)
			r.Elsewhere = append(r.Elsewhere, new(record))
		}
		r.Elsewhere[i].copyPart(part, r)
	}
	r.Elsewhere = slices.DeleteFunc(r.Elsewhere, func(other *record) bool { return len(other.Measured) == 0 })
}

// of reports whether a record that is kept is of a machine.
func (r *record) of(m hostinfo.Machine) bool {
	for _, at := range r.Measured {
		return sameMachine(at.Machine, m)
	}
	return false
}

// sameMachine compares processors: the rest changes with each update.
func sameMachine(a, b hostinfo.Machine) bool { return a.CPU == b.CPU && a.CPUs == b.CPUs }

// everywhere is the text of a part on each machine that has it, the one that measured last first.
func (r *record) everywhere(part string, table func(*record) string) string {
	var b strings.Builder
	b.WriteString(r.Measured[part].text() + table(r))
	for _, other := range r.with(part) {
		b.WriteString("\n" + other.Measured[part].text() + table(other))
	}
	return b.String()
}

// with returns what is kept of the machines that have measured a part.
func (r *record) with(part string) (all []*record) {
	for _, other := range r.Elsewhere {
		if _, ok := other.Measured[part]; ok {
			all = append(all, other)
		}
	}
	return all
}
