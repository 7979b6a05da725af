package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	chart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// drawCharts writes an SVG chart for each work, and for each beside programs on the library.
func drawCharts(rec *record, dir string) error {
	all, err := toolCharts(rec)
	for name, svg := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644))
	}
	return err
}

// toolCharts returns, by name, the charts of the comparison of tools and of that with programs on the library.
func toolCharts(rec *record) (map[string][]byte, error) {
	charts := make(map[string][]byte)
	add := func(name, part string, w work, values []value) error {
		svg, err := drawn(values, w, rec.Measured[part])
		if svg != nil {
			charts[name] = svg
		}
		return err
	}
	var failed error
	for _, w := range works() {
		failed = errors.Join(failed, add(w.key, "tools", w, rec.Values))
	}
	if rec.Library == nil {
		return charts, failed
	}
	var values []value
	for _, b := range rec.Library.Values {
		values = append(values, b.value)
	}
	for _, w := range libraryWorks() {
		failed = errors.Join(failed, add("library-"+w.key, "library", w, values))
	}
	return charts, failed
}

// drawn returns the chart of a work, a bar for each tool, or nil if no tool has done it.
func drawn(values []value, w work, measured when) ([]byte, error) {
	better := "more is better"
	if w.less {
		better = "less is better"
	}
	bars, most := bars(values, w)
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
		Bars: bars, Elements: []chart.Renderable{measured.below(640)},
	}
	var svg bytes.Buffer
	err := c.Render(chart.SVG, &svg)
	return svg.Bytes(), err
}

// bars are the tools' medians, and the largest of them.
func bars(values []value, w work) (all []chart.Value, most float64) {
	for _, v := range values {
		if v.Work != w.key {
			continue
		}
		fill := drawing.ColorFromHex("9aa5b1")
		if strings.Contains(v.Tool, "iwarp") {
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

// subtitle says on which machine and when, for a chart: other machines are in the tables alone.
func (w when) subtitle() string {
	if w.Date == "" {
		return ""
	}
	return fmt.Sprintf("%d CPUs, %s; %s", w.Machine.CPUs, w.Machine.CPU, w.Date)
}

// below draws the subtitle below the title of a chart that is so many pixels wide.
func (w when) below(width int) chart.Renderable {
	return func(r chart.Renderer, _ chart.Box, defaults chart.Style) {
		style := chart.Style{FontSize: 9, FontColor: drawing.ColorFromHex("333333")}.InheritFrom(defaults)
		box := chart.Draw.MeasureText(r, w.subtitle(), style)
		chart.Draw.Text(r, w.subtitle(), (width-box.Width())/2, 42, style)
	}
}
