package oooexperiment

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/report"
)

// Report returns the report in all its forms. None of its figures is wrong, so that JUnit has no case.
func (r *Report) Report() report.Report { return report.Of(r.document(), r) }

func (r *Report) document() *report.Document {
	d := &report.Document{Tool: "study", Title: "Placement ahead of order", Interrupted: r.Interrupted}
	if len(r.Results) == 0 {
		return d
	}
	rows := [][]string{
		{"", "ahead", "placed", "99 %", "deliv-", "99 %", "MPA", "TCP", "reck-"},
		{"", "", "", "", "ered", "", "holds", "holds", "oned"},
		{"", "%", "us", "us", "us", "us", "bytes", "bytes", "bytes"},
	}
	for i := range r.Results {
		rows = append(rows, r.Results[i].row())
	}
	d.Sections = []report.Section{{
		Head: fmt.Sprintf("%g %% of packets lost, %g %% late; round trip %v; MTU %d, EMSS %d; %d x %d bytes",
			r.Loss*100, r.Reorder*100, 2*r.Delay, r.MTU, r.Results[0].EMSS, r.Connections, r.Bytes),
		Columns: report.Columns{Rows: rows, Figures: true},
	}}
	return d
}

// row is a line of the table.
func (r *Result) row() []string {
	placed, delivered := r.PlacedAhead, r.DeliveredAhead
	return []string{
		r.Way, fmt.Sprintf("%.1f", 100*r.Ahead),
		figure(placed.Median), figure(placed.Most),
		fmt.Sprintf("%.0f", delivered.Median), fmt.Sprintf("%.0f", delivered.Most),
		fmt.Sprint(r.HeldAll), fmt.Sprint(r.TCPHeldAll), fmt.Sprint(r.ReckonedBuffer()),
	}
}

// figure has no digit that is less than a thousandth: the table fits on a terminal.
func figure(x float64) string {
	if x < 1000 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
