package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	chart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// drawCharts writes one SVG chart for each work.
func drawCharts(rec *record, dir string) error {
	for _, w := range works() {
		svg, err := drawn(rec, w)
		if err != nil {
			return err
		}
		if svg == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, w.key+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawn returns the chart of a work, a bar for each tool, or nil if no tool has done it.
func drawn(rec *record, w work) ([]byte, error) {
	better := "more is better"
	if w.less {
		better = "less is better"
	}
	bars, most := bars(rec, w)
	if len(bars) == 0 {
		return nil, nil
	}
	c := chart.BarChart{
		Title: fmt.Sprintf("%s [%s], %s", w.title, w.unit, better), TitleStyle: chart.Style{FontSize: 12},
		Width: 640, Height: 320, BarWidth: 70, BarSpacing: 40,
		Background: chart.Style{Padding: chart.Box{Top: 50, Left: 10, Right: 10, Bottom: 10}},
		YAxis: chart.YAxis{
			Range:          &chart.ContinuousRange{Min: 0, Max: most * 1.1},
			ValueFormatter: func(v any) string { return short(v.(float64)) },
		},
		Bars: bars,
	}
	var svg bytes.Buffer
	err := c.Render(chart.SVG, &svg)
	return svg.Bytes(), err
}

// bars are the tools' medians, and the largest of them.
func bars(rec *record, w work) (all []chart.Value, most float64) {
	for _, v := range rec.Values {
		if v.Work != w.key {
			continue
		}
		fill := drawing.ColorFromHex("9aa5b1")
		if v.Tool == "iwarp" {
			fill = drawing.ColorFromHex("2f6fb0")
		}
		all = append(all, chart.Value{
			Label: fmt.Sprintf("%s: %s", v.Tool, short(v.Median)), Value: v.Median,
			Style: chart.Style{FillColor: fill, StrokeColor: fill},
		})
		most = max(most, v.Median)
	}
	return all, most
}
