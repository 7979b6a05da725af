package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
)

// DefaultTimeout is the time that a row has.
const DefaultTimeout = 5 * time.Second

// parallel is how many rows are run at a time: most of the time, a row waits.
const parallel = 8

// A Config says which rows to run.
type Config struct {
	// Figures picks figures by their numbers; then nothing else is run. If it is empty,
	// all rows are run.
	Figures []int
	// Network picks the rows of one of internal/network's. If empty, TCP's.
	Network string
	// Match picks rows by "group/name", such as "figure 2/RDMAC M=1 -> RDMAC M=1". If
	// nil, all.
	Match *regexp.Regexp
	// Timeout is the time that a row has. If zero, DefaultTimeout.
	Timeout time.Duration
	// Watch, if it is set, is told of each row when it begins, one after the other.
	Watch func(row string)
}

// A Report is what came of the rows. The documentation of the package describes its
// JSON.
type Report struct {
	report.Stamp

	Cells      int     `json:"cells"`
	AsDemanded int     `json:"as_demanded"`
	MS         float64 `json:"ms"`
	// Interrupted: the context ended before the last row. Those that were not over are missing.
	Interrupted bool           `json:"interrupted,omitempty"`
	Figures     []FigureReport `json:"figures"`
	Wider       []*Result      `json:"wider"`

	network string // that the rows were run over
	picked  int    // rows
}

// A FigureReport is what came of one figure.
type FigureReport struct {
	Number int     `json:"figure"`
	Title  string  `json:"title"`
	Cells  []*Cell `json:"cells"`
}

// A Cell is what came of one cell of a figure.
type Cell struct {
	Initiator        string `json:"initiator"` // kind
	InitiatorMarkers bool   `json:"initiator_markers"`
	Responder        string `json:"responder"`
	ResponderMarkers bool   `json:"responder_markers"`
	Printed          string `json:"printed"` // in the document
	Result

	initiator, responder RNIC
}

// A Listed is a row that a Config picks.
type Listed struct {
	Group        string   `json:"group"`
	Name         string   `json:"name"`
	Requirements []string `json:"requirements"`
	Section      string   `json:"section"` // with its document
	Demanded     string   `json:"demanded"`
}

// A Result is what came of one row.
type Result struct {
	Listed
	Got            string   `json:"got"`
	OK             bool     `json:"ok"`
	Differences    []string `json:"differences"`
	InitiatorError string   `json:"initiator_error,omitempty"` // why its connection failed, where it did
	ResponderError string   `json:"responder_error,omitempty"`
	Wire           []string `json:"wire"`
	MS             float64  `json:"ms"`

	found string // in the words of a figure's cell
	over  bool   // it came to an end before the context did
}

// ErrNothingPicked is the error of a Config that picks no row.
var ErrNothingPicked = errors.New("matrix: no row is picked")

// Networks returns the names of the networks that there are rows for.
func Networks() []string { return []string{network.TCP, network.SCTP, network.UserTCP} }

// Run runs all rows that a Config picks. The error is the context's, beside a report on the rows that were over by
// then, or ErrNothingPicked; a row that is not as demanded is no error.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	figures, groups, err := cfg.rows()
	if err != nil {
		return nil, err
	}
	return run(ctx, cfg, figures, groups)
}

// rows returns all rows over the network.
func (c *Config) rows() ([]Figure, []Group, error) {
	switch c.Network {
	case network.SCTP:
		return nil, SCTPGroups(), nil
	case "", network.TCP, network.UserTCP:
		return Figures, Groups(), nil
	}
	return nil, nil, fmt.Errorf("matrix: there are no rows for network %q", c.Network)
}

// List returns the rows that a Config picks, in the order of a report. The error is ErrNothingPicked if there is none.
func List(cfg Config) (rows []Listed, err error) {
	figures, groups, err := cfg.rows()
	if err != nil {
		return nil, err
	}
	_, tasks := plan(&cfg, figures, groups)
	for _, t := range tasks {
		rows = append(rows, t.result.Listed)
	}
	if len(rows) == 0 {
		return nil, ErrNothingPicked
	}
	return rows, nil
}

func run(ctx context.Context, cfg Config, figures []Figure, groups []Group) (*Report, error) {
	began := time.Now()
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	r, tasks := plan(&cfg, figures, groups)
	r.network, r.picked = cmp.Or(cfg.Network, network.TCP), len(tasks)
	if len(tasks) == 0 {
		return nil, ErrNothingPicked
	}
	if cfg.Network == network.UserTCP { // the same rows as over TCP
		for i := range tasks {
			tasks[i].over(cfg.Network)
		}
	}
	runAll(ctx, &cfg, tasks)
	r.dropRest()
	for _, t := range tasks {
		r.Cells += wording.Bit(t.result.over)
		r.AsDemanded += wording.Bit(t.result.OK)
	}
	r.MS = report.Milliseconds(time.Since(began))
	if r.Cells < len(tasks) {
		r.Interrupted = true
		return r, fmt.Errorf("matrix: %w", ctx.Err())
	}
	return r, nil
}

// dropRest drops the rows that were not over when the context ended.
func (r *Report) dropRest() {
	for i := range r.Figures {
		f := &r.Figures[i]
		f.Cells = slices.DeleteFunc(f.Cells, func(c *Cell) bool { return !c.over })
	}
	r.Figures = slices.DeleteFunc(r.Figures, func(f FigureReport) bool { return len(f.Cells) == 0 })
	r.Wider = slices.DeleteFunc(r.Wider, func(row *Result) bool { return !row.over })
}

// A task is a row to be run, and where its result goes.
type task struct {
	row    *Row
	result *Result
}

// over has the row run over a network.
func (t *task) over(name string) {
	row := *t.row
	row.Initiator.Network = name
	t.row = &row
}

// plan lays out the report, with a task for each row that is picked.
func plan(cfg *Config, figures []Figure, groups []Group) (*Report, []task) {
	r := &Report{Figures: []FigureReport{}, Wider: []*Result{}}
	var tasks []task
	for _, f := range figures {
		if len(cfg.Figures) > 0 && !slices.Contains(cfg.Figures, f.Number) {
			continue
		}
		if figure, cells := f.plan(cfg); len(cells) > 0 {
			r.Figures = append(r.Figures, figure)
			tasks = append(tasks, cells...)
		}
	}
	for _, g := range groups {
		for n := range g.Rows {
			if len(cfg.Figures) == 0 && cfg.picks(g.Name, &g.Rows[n]) {
				result := &Result{Listed: g.Rows[n].listed(g.Name)}
				r.Wider = append(r.Wider, result)
				tasks = append(tasks, task{&g.Rows[n], result})
			}
		}
	}
	return r, tasks
}

func (f *Figure) plan(cfg *Config) (r FigureReport, tasks []task) {
	r = FigureReport{Number: f.Number, Title: f.Title}
	group := fmt.Sprintf("figure %d", f.Number)
	for line, i := range f.Rows {
		for column, re := range f.Columns {
			row := f.row(line, column)
			if !cfg.picks(group, row) {
				continue
			}
			cell := &Cell{
				Initiator: i.Kind.String(), InitiatorMarkers: i.Markers,
				Responder: re.Kind.String(), ResponderMarkers: re.Markers,
				Printed: i.Cells[column], Result: Result{Listed: row.listed(group)}, initiator: i.RNIC, responder: re,
			}
			r.Cells = append(r.Cells, cell)
			tasks = append(tasks, task{row, &cell.Result})
		}
	}
	return r, tasks
}

func (c *Config) picks(group string, r *Row) bool {
	return c.Match == nil || c.Match.MatchString(group+"/"+r.Name)
}

// runAll runs rows side by side.
func runAll(ctx context.Context, cfg *Config, tasks []task) {
	queue := make(chan task)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for t := range queue {
				t.run(ctx, cfg.Timeout)
			}
		})
	}
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		queue <- t
		if cfg.Watch != nil {
			cfg.Watch(t.result.Group + "/" + t.result.Name)
		}
	}
	close(queue)
	workers.Wait()
}

// run runs one row.
func (t task) run(outer context.Context, limit time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(outer, limit)
	defer cancel()
	c := &cell{row: t.row}
	err := c.run(ctx)
	if outer.Err() != nil {
		return // whatever it found, the interrupt may have brought about
	}
	t.judge(c, err, limit)
	t.result.MS = report.Milliseconds(time.Since(began))
}

// judge notes what came of a row.
func (t task) judge(c *cell, err error, limit time.Duration) {
	demands := t.row.demands()
	r := t.result
	r.over = true
	r.Got, r.Differences = judge(demands, &c.facts)
	r.found = c.facts.cell()
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it hangs: it is not over after %v", limit)
	}
	if err != nil {
		r.Differences = append([]string{err.Error()}, r.Differences...)
	}
	if r.Differences == nil {
		r.Differences = []string{}
	}
	r.OK, r.Wire = len(r.Differences) == 0, append([]string{}, c.lines...)
	if c.i != nil {
		r.InitiatorError = c.i.causes.String()
	}
	if c.r != nil {
		r.ResponderError = c.r.causes.String()
	}
}
