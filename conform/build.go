package conform

import (
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

// toResponder and toInitiator return a case for a peer of that role. requirements
// are separated by blanks.
func toResponder(id, requirements, section, text string, run func(*Session)) Case {
	return Case{ID: id, Requirements: strings.Fields(requirements), Section: section, Role: mpa.RoleResponder, Text: text, Run: run}
}

func toInitiator(id, requirements, section, text string, run func(*Session)) Case {
	c := toResponder(id, requirements, section, text, run)
	c.Role = mpa.RoleInitiator
	return c
}

// in limits a case to dialects.
func (c Case) in(dialects ...mpa.Dialect) Case {
	c.Dialects = dialects
	return c
}

// withRping has a case need rping on the peer's side.
func (c Case) withRping() Case {
	c.App = AppRping
	return c
}

// slow marks a case that waits for the peer's own timeouts.
func (c Case) slow() Case {
	c.Slow = true
	return c
}

// unsafe marks a case that may harm the peer's system.
func (c Case) unsafe(why string) Case {
	c.Unsafe = why
	return c
}

// all limits cases to dialects.
func all(dialects []mpa.Dialect, cases ...Case) []Case {
	for i := range cases {
		if len(cases[i].Dialects) == 0 {
			cases[i].Dialects = dialects
		}
	}
	return cases
}

// frames are the dialects with a Request and a Reply.
func frames() []mpa.Dialect {
	return []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectRevision0}
}

// rfcs are the dialects of RFCs.
func rfcs() []mpa.Dialect { return []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044} }

// enhanced is the dialect of RFC 6581.
func enhanced() []mpa.Dialect { return []mpa.Dialect{mpa.DialectRFC6581} }

// plain is every dialect with frames but that of RFC 6581.
func plain() []mpa.Dialect {
	return []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectRevision0}
}

// text returns n octets of private data.
func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('A' + i%26)
	}
	return b
}
