package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	chart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"

	"github.com/goiwarp/iwarp/internal/oooexperiment"
	"github.com/goiwarp/iwarp/internal/report"
)

// studies are what is run of iwarp study: one connection, and a thousand at the same time.
func studies() []oooexperiment.Config {
	one := oooexperiment.Config{Connections: 1, Bytes: 8 << 20, Loss: .01, Reorder: .02,
		Delay: 500 * time.Microsecond, MTU: 1500, Seed: 1}
	many := one
	many.Connections, many.Bytes = 1000, 32<<10
	return []oooexperiment.Config{one, many}
}

// compared are the ways of the document's table: those with MPA alone at the ends, and windows as large as TCP makes
// them. For the others the document has tables and words of their own.
func compared() []oooexperiment.Way {
	return slices.DeleteFunc(slices.Clone(oooexperiment.Ways),
		func(w oooexperiment.Way) bool { return w.QPs || w.Window != 0 })
}

func (c *cli) measureStudy(ctx context.Context, rec *record) error {
	rec.Study = nil
	for _, cfg := range studies() {
		measured, err := oooexperiment.RunAll(ctx, cfg, compared(), func(way string) {
			fmt.Fprintf(os.Stderr, "%d connections, %s\n", cfg.Connections, way)
		})
		if err != nil {
			return err
		}
		rec.Study = append(rec.Study, *measured)
	}
	return nil
}

func (c *cli) measureMemory(ctx context.Context, rec *record) (err error) {
	rec.Memory, err = oooexperiment.RunAll(ctx, memoryStudy(), oooexperiment.Growth,
		func(way string) { fmt.Fprintln(os.Stderr, way) })
	return err
}

// memoryStudy is what is run of iwarp study --growth.
func memoryStudy() oooexperiment.Config {
	return oooexperiment.Config{Connections: 20, Bytes: 1 << 20, Loss: .005, Reorder: .02,
		Delay: 500 * time.Microsecond, MTU: 1500, Seed: 1}
}

// memoryTable has a row for each way of it.
func memoryTable(rec *record) string {
	r := rec.Memory
	if r == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(studyHead(r))
	b.WriteString(report.MarkdownHeading("", "ahead, %", "MPA holds", "of one", "TCP holds", "of one"))
	for _, x := range r.Results {
		b.WriteString(report.MarkdownRow(x.Way, fmt.Sprintf("%.1f", 100*x.Ahead),
			strconv.Itoa(x.HeldAll), strconv.Itoa(x.Held), strconv.Itoa(x.TCPHeldAll), strconv.Itoa(x.TCPHeld)))
	}
	return b.String()
}

// studyHead says what was run.
func studyHead(r *oooexperiment.Report) string {
	return fmt.Sprintf("Connections: %d, each of %d KiB; MTU %d, %g %% of packets lost, %g %% late, round trip %v:\n\n",
		r.Connections, r.Bytes>>10, r.MTU, 100*r.Loss, 100*r.Reorder, 2*r.Delay)
}

// studyTable has a row for each way, once for each number of connections.
func studyTable(rec *record) string {
	var b strings.Builder
	for _, r := range rec.Study {
		b.WriteString(studyHead(&r))
		b.WriteString(report.MarkdownHeading("FPDUs", "ahead, %", "placed, us", "99 %", "delivered, us", "99 %",
			"MPA holds", "TCP holds", "reckoned"))
		for _, x := range r.Results {
			b.WriteString(report.MarkdownRow(x.Way, fmt.Sprintf("%.1f", 100*x.Ahead), short(x.PlacedAhead.Median),
				short(x.PlacedAhead.Most),
				short(x.DeliveredAhead.Median), short(x.DeliveredAhead.Most), strconv.Itoa(x.HeldAll),
				strconv.Itoa(x.TCPHeldAll), strconv.Itoa(x.ReckonedBuffer())))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// studyCharts are the times to placement on one connection, and what MPA holds of many.
func studyCharts(rec *record) (map[string][]byte, error) {
	all := make(map[string][]byte)
	for _, r := range rec.Study {
		name, title := "ahead-time", "Arrival to placement of what came ahead of order [us, median], logarithmic"
		value := func(x *oooexperiment.Result) float64 { return x.PlacedAhead.Median }
		if r.Connections > 1 {
			name, title = "ahead-memory", fmt.Sprintf("What MPA holds of %d connections [KiB, logarithmic]",
				r.Connections)
			value = func(x *oooexperiment.Result) float64 { return float64(x.HeldAll) / 1024 }
		}
		svg, err := studyChart(title, r.Results, value, rec.Measured["study"])
		if err != nil {
			return nil, err
		}
		all[name] = svg
	}
	return all, nil
}

func studyChart(title string, results []oooexperiment.Result, value func(x *oooexperiment.Result) float64,
	measured when) ([]byte, error) {
	c := chart.BarChart{
		Title: title, TitleStyle: chart.Style{FontSize: 12},
		Width: 900, Height: 340, BarWidth: 80, BarSpacing: 35,
		Background: chart.Style{Padding: chart.Box{Top: 50, Left: 10, Right: 10, Bottom: 40}},
		Elements:   []chart.Renderable{measured.below(900)},
	}
	most := 10.0
	for i := range results {
		fill := drawing.ColorFromHex("9aa5b1")
		if i == 0 {
			fill = drawing.ColorFromHex("2f6fb0")
		}
		v := value(&results[i])
		c.Bars = append(c.Bars, chart.Value{
			Label: fmt.Sprintf("%s: %s", results[i].Way, short(v)), Value: max(v, 1),
			Style: chart.Style{FillColor: fill, StrokeColor: fill},
		})
		most = max(most, v)
	}
	c.YAxis = chart.YAxis{Range: &chart.LogarithmicRange{Min: 1, Max: most * 2},
		ValueFormatter: func(v any) string { return short(v.(float64)) }}
	var svg bytes.Buffer
	err := c.Render(chart.SVG, &svg)
	return svg.Bytes(), err
}

func drawStudy(rec *record, dir string) error {
	all, err := studyCharts(rec)
	if err != nil {
		return err
	}
	for name, svg := range all {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
