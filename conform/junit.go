package conform

import (
	"encoding/xml"
	"io"
	"strings"
	"time"
)

// A JUnit suite in the form that CI systems read.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"` // the group
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes results as one JUnit suite. Cases that are not applicable or
// inconclusive count as skipped.
func WriteJUnit(w io.Writer, name string, results []Result) error {
	suite := junitSuite{Name: name, Tests: len(results)}
	var took time.Duration
	for i := range results {
		c := junitCaseOf(&results[i])
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
		took += results[i].Took
		suite.Cases = append(suite.Cases, c)
	}
	suite.Time = seconds(took)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitCaseOf(r *Result) junitCase {
	group, name, _ := strings.Cut(r.Case.ID, "/")
	c := junitCase{Class: "conform." + group, Name: name, Time: seconds(r.Took)}
	switch r.Verdict {
	case Pass:
	case Fail:
		var text strings.Builder
		NewPrinter(&text, false).Result(r)
		c.Failure = &junitMessage{Message: "expected " + r.Expected + ", got " + r.Got, Text: text.String()}
	default:
		c.Skipped = &junitMessage{Message: r.Verdict.String() + ": " + r.Why}
	}
	return c
}
