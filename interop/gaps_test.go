//go:build interop

package interop_test

import (
	"slices"
)

// What tshark 4.0 complains of without cause. It checks against RFC 5044, which
// knows one revision and five reserved bits; a rejection it merely mentions.
var known = map[string]func(event) bool{
	"IWARP_MPA: Res field is NOT set to zero as required by RFC 5044": func(e event) bool {
		return e.startup.S() || e.startup.Res() != 0
	},
	"IWARP_MPA: Rev field is NOT set to one as required by RFC 5044": func(e event) bool {
		return e.startup.Rev() != 1
	},
	"IWARP_MPA: Reject bit set by Responder": func(e event) bool {
		return e.startup.R()
	},
}

// knownComplaints returns those to be expected for these events.
func knownComplaints(events []event) []string {
	var want []string
	for complaint, about := range known {
		if slices.ContainsFunc(events, func(e event) bool { return e.startup != nil && about(e) }) {
			want = append(want, complaint)
		}
	}
	slices.Sort(want)
	return want
}

// blindSpot says why tshark cannot find a direction's FPDUs, if it cannot.
func blindSpot(c *conversation, events []event, dir direction) string {
	return ""
}
