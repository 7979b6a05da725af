package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A suite in the form that CI systems read.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
	Notes    string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"` // tool and group
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the checks as one JUnit suite. A run that is not complete is an error in it: otherwise a run that
// never was would look like one in which nothing is wrong. One that was interrupted is skipped in part: the command
// ends with success then, unless it has found something.
func (d *Document) WriteJUnit(w io.Writer) error {
	checks := d.checks()
	suite := junitSuite{Name: "iwarp " + d.Tool + ": " + d.Title, Tests: len(checks)}
	for i := range checks {
		c := checks[i].junit(d.Tool)
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if d.Stopped != "" {
		suite.stopped(d)
	}
	suite.Time = wording.Seconds(d.took(), 3)
	for _, l := range d.Notes {
		suite.Notes += l.Label + " " + l.Text + "\n"
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	return err
}

// stopped adds a case for what is missing.
func (s *junitSuite) stopped(d *Document) {
	c := junitCase{Class: d.Tool, Name: "run", Time: wording.Seconds(0, 3)}
	if why := (&junitMessage{Message: d.stopped()}); d.Interrupted {
		c.Skipped = why
		s.Skipped++
	} else {
		c.Error = why
		s.Errors++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}

func (c *Check) junit(tool string) junitCase {
	j := junitCase{Class: tool, Name: c.Name, Time: wording.Seconds(c.Took, 3)}
	if c.Group != "" {
		j.Class += "." + c.Group
	}
	switch c.Status {
	case Failed:
		var text strings.Builder
		c.write(&text, false)
		j.Failure = &junitMessage{Message: "expected " + c.Expected + ", got " + c.Got, Text: text.String()}
	case Skipped:
		j.Skipped = &junitMessage{Message: c.Verdict + ": " + c.Why}
	}
	return j
}
