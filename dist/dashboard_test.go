package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const dashboardFile = "grafana/iwarp.json"

// A dashboard is what Grafana reads, as far as the tests look at it.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ RefID, Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	testrig.Must(t, err)
	d := new(dashboard)
	testrig.Must(t, json.Unmarshal(text, d))
	return d
}

// expressions are those of all panels, each once, with values for the variables: over so long, of any instance and
// device.
func (d *dashboard) expressions(over string) (all []string) {
	values := strings.NewReplacer("$__rate_interval", over, "$instance", ".+", "$device", ".+")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, values.Replace(target.Expr))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// documented are the metrics that there are, each with its labels: those of docs/metrics.md, which tests of metrics and
// of monitor hold to what is collected, and those of Prometheus' own collectors.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	testrig.Must(t, err)
	labels := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels[row[1]] = []string{"instance", "job"} // which Prometheus adds
		labels[row[1]] = append(labels[row[1]], regexp.MustCompile(`\w+`).FindAllString(row[2], -1)...)
		if !strings.HasPrefix(row[1], "iwarp_serve_") {
			labels[row[1]] = append(labels[row[1]], "device")
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	testrig.Must(t, err)
	for _, family := range families {
		labels[family.GetName()] = []string{"instance", "job"}
	}
	return labels
}

// TestDashboard: each expression is of metrics and labels that there are, and no panel hides another.
func TestDashboard(t *testing.T) {
	d, known := readDashboard(t), documented(t)
	ids, occupied, expressions := map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has its ID, %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		at := p.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := occupied[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %s, or beside the 24 columns", p.Title, other)
				}
				occupied[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			expressions++
			wantKnown(t, known, p.Title, target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			wantKnown(t, known, v.Name, strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"))
		}
	}
	if expressions < 40 {
		t.Errorf("%d expressions", expressions)
	}
}

// wantKnown judges the names in an expression: each metric has a selector in it, and the labels in that and after "by"
// are its own.
func wantKnown(t *testing.T, known map[string][]string, title, expression string) {
	t.Helper()
	metrics := regexp.MustCompile(`\b((?:iwarp|node|process|go)_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(expression,
		-1)
	if len(metrics) == 0 {
		t.Errorf("%s: %s is of no metric", title, expression)
	}
	var used []string
	for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expression, -1) {
		used = append(used, regexp.MustCompile(`\w+`).FindAllString(by[1], -1)...)
	}
	for _, m := range metrics {
		labels, ok := known[m[1]]
		if !ok {
			t.Errorf("%s: there is no %s", title, m[1])
			continue
		}
		for _, selected := range regexp.MustCompile(`(\w+)=`).FindAllStringSubmatch(m[2], -1) {
			used = append(used, selected[1])
		}
		for _, label := range used {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: %s has no label %s", title, m[1], label)
			}
		}
	}
}

// TestWantKnown: the test above sees what is wrong.
func TestWantKnown(t *testing.T) {
	known := map[string][]string{"iwarp_a_total": {"device"}}
	for expression, want := range map[string]bool{
		`sum by (device) (rate(iwarp_a_total{device=~"x"}[5m]))`: true,
		`sum by (opcode) (rate(iwarp_a_total[5m]))`:              false,
		`iwarp_a_total{kind="x"}`:                                false,
		`iwarp_b_total`:                                          false,
		`vector(1)`:                                              false,
	} {
		probe := new(testing.T)
		if wantKnown(probe, known, "panel", expression); probe.Failed() == want {
			t.Errorf("%s: known is %v", expression, !want)
		}
	}
}

// TestDashboardParses has Prometheus' own tool read the expressions.
func TestDashboardParses(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("there is no promtool here: %v", err)
	}
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for i, expression := range readDashboard(t).expressions("5m") {
		rules += fmt.Sprintf("  - record: expression:%d\n    expr: '%s'\n", i, expression)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	testrig.Must(t, os.WriteFile(file, []byte(rules), 0o600))
	if said, err := exec.CommandContext(testrig.Within(t), tool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
