package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

// List prints cases, three lines each: the ID with what it takes to be run,
// requirements and section, and the sentence; and why a case is unsafe, if it is.
func List(w io.Writer, cases []Case) {
	for _, c := range cases {
		fmt.Fprintf(w, "%s%s\n    %s  %s\n    %s\n",
			c.ID, traits(&c), strings.Join(c.Requirements, " "), c.Section, c.Text)
		if c.Unsafe != "" {
			fmt.Fprintf(w, "    unsafe: %s\n", c.Unsafe)
		}
	}
}

// traits returns what it takes to run a case, in brackets.
func traits(c *Case) string {
	t := []string{"peer " + strings.ToLower(c.Role.String())}
	for _, d := range c.Dialects {
		short, _ := d.MarshalText()
		t = append(t, string(short))
	}
	if c.sctp {
		t = append(t, "SCTP")
	}
	if c.App != AppNone {
		t = append(t, "application "+c.App.String())
	}
	if c.Delayed {
		t = append(t, "delayed startup")
	}
	if c.Slow {
		t = append(t, "slow")
	}
	if c.Unsafe != "" {
		t = append(t, "unsafe")
	}
	return "  (" + strings.Join(t, ", ") + ")"
}

// caseJSON is the form of a Case in JSON.
type caseJSON struct {
	ID           string        `json:"id"`
	Requirements []string      `json:"requirements"`
	Section      string        `json:"section"`
	Role         string        `json:"role"` // the peer's
	Dialects     []mpa.Dialect `json:"dialects,omitempty"`
	SCTP         bool          `json:"sctp,omitempty"`
	App          App           `json:"app"`
	Delayed      bool          `json:"delayed,omitempty"`
	Slow         bool          `json:"slow,omitempty"`
	Unsafe       string        `json:"unsafe,omitempty"`
	Text         string        `json:"text"`
}

// MarshalJSON returns id, requirements, section, role, app and text, and dialects, sctp, delayed, slow and unsafe where
// they are set.
func (c Case) MarshalJSON() ([]byte, error) {
	return json.Marshal(caseJSON{c.ID, append([]string{}, c.Requirements...), c.Section,
		strings.ToLower(c.Role.String()), c.Dialects, c.sctp, c.App, c.Delayed, c.Slow, c.Unsafe, c.Text})
}

// ListJSON prints cases as JSON, an object on a line for each: see [Case.MarshalJSON].
func ListJSON(w io.Writer, cases []Case) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, c := range cases {
		if err := enc.Encode(c); err != nil {
			return err
		}
	}
	return nil
}
