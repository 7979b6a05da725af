package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// A siwWork is what one of perftest's programs does over siw, and beside it iwarp perf and the same program on the
// library of iwarp run, each between two processes in one guest and over its loopback.
type siwWork struct {
	program string // of perftest
	args    string
	ours    string // iwarp perf's options
	op      perf.Op
	size    int
	column  string // of the program's table
	less    bool   // less is better
}

func siwWorks() []siwWork {
	return []siwWork{
		{"ib_send_lat", "-n 300 -e", "", perf.Send, 64, "t_typical[usec]", true},
		{"ib_write_lat", "-n 300", "--poll", perf.Write, 64, "t_typical[usec]", true},
		{"ib_write_lat", "-n 100", "--poll", perf.Write, 64 << 10, "t_typical[usec]", true},
		{"ib_write_bw", "-n 200", "--poll", perf.Write, 64 << 10, "BW average[MB/sec]", false},
	}
}

// Those that take turns, as the console has them: the program over siw, iwarp perf, and the program on the library.
const (
	siwTheirs  = "theirs"
	siwOurs    = "ours"
	siwLibrary = "library"
)

// siwBeside are those that are compared with siw.
func siwBeside() []string { return []string{siwOurs, siwLibrary} }

// siwTool is what the table calls one of them.
func siwTool(by string) string {
	if by == siwLibrary {
		return onLibrary
	}
	return ownPerf
}

// A siwValue is what one tool makes of one work over all rounds, beside siw. They are figures of an emulated CPU.
type siwValue struct {
	Program    string  `json:"program"`
	Tool       string  `json:"tool"`
	Size       int     `json:"size"`
	Rounds     int     `json:"rounds"`
	Ratio      float64 `json:"ratio"` // of the tool's figure to that of the program over siw
	RatioLower float64 `json:"ratio_lower_quartile"`
	RatioUpper float64 `json:"ratio_upper_quartile"`
	Less       bool    `json:"less_is_better"`
}

// siwMark begins the lines of the guest's console that are for us.
const siwMark = "COMPARE"

// measureSiw has all run in the guest, in turns.
func (c *cli) measureSiw(ctx context.Context, rec *record) error {
	script := func(port int) string { return siwScript(port, c.Rounds) }
	out, err := inGuest(ctx, buildBoth, script, "--mem", "1024", "--smp", "2", "--timeout", "2400")
	if err != nil {
		return err
	}
	rec.Siw, err = siwValues(out)
	return err
}

// perftestTurn is a function of the guest's shell: it runs both ends of a program, the server first, and prints what
// the client does. siw lets the listener of the program before go some time after that has ended. What was measured by
// a clock of no use is measured anew, a few times: perftest finds out at each start how fast the processor's counter
// is, and on a busy machine often not.
const perftestTurn = `listens() { cat /proc/net/tcp /proc/net/tcp6 | grep -q ":$(printf %04X $port) 0*:0000 0A"; }
soon() { for i in $(seq 300); do "$@" && return; usleep 50000; done; }
free() { ! listens; }
turn() {
	port=$1; shift
	for try in 1 2 3 4; do
		soon free
		timeout 60 "$@" -p $port >/dev/null 2>&1 &
		soon listens
		timeout 60 "$@" -p $port $GUEST_IP >out 2>&1
		wait $!
		grep -q '#bytes' out && ! grep -Eq ' inf| 0[.]00 +0[.]00' out && break
	done
	cat out
}
`

// siwScript is what the guest's shell does: fetch iwarp and the library, and then, round by round, each work by all.
func siwScript(port, rounds int) string {
	var b strings.Builder
	b.WriteString(fetchIwarp(port) + fetchLibrary(port) + perftestTurn)
	b.WriteString("./iwarp perf --listen $GUEST_IP:7000 >/dev/null 2>&1 &\nperf=$!\n")
	fmt.Fprintf(&b, "for round in $(seq %d); do\n", rounds)
	for i, w := range siwWorks() {
		for _, by := range append([]string{siwTheirs}, siwBeside()...) {
			fmt.Fprintf(&b, "echo %s $round %d %s; %s\n", siwMark, i, by, w.command(by))
		}
	}
	b.WriteString("done\nkill $perf\n")
	return b.String()
}

// command is what the guest's shell runs for a work by one of those that take turns.
func (w siwWork) command(by string) string {
	run := fmt.Sprintf("%s -R -F %s -s %d", w.program, w.args, w.size)
	switch by {
	case siwLibrary:
		return "turn 18601 ./iwarp run " + run
	case siwOurs:
		return fmt.Sprintf("./iwarp perf --connect $GUEST_IP:7000 --tcp=off --json --duration 100ms --op %v --size %d %s 2>/dev/null | tr -d '\\n'; echo",
			w.op, w.size, w.ours)
	default:
		return "turn 18600 " + run
	}
}

// siwValues reads the console.
func siwValues(console []byte) ([]siwValue, error) {
	figures, rounds := make(map[string]float64), 0
	var failed error
	for part := range bytes.SplitSeq(console, []byte(siwMark+" ")) {
		head, body, _ := strings.Cut(strings.ReplaceAll(string(part), "\r", ""), "\n")
		words := strings.Fields(head)
		if len(words) != 3 {
			continue
		}
		i, err := strconv.Atoi(words[1])
		if err != nil || i < 0 || i >= len(siwWorks()) {
			continue
		}
		x, err := siwWorks()[i].parse(words[2], body)
		if err != nil { // a turn that failed is missing, and the round does not count
			failed = fmt.Errorf("%s of %d bytes, %s: %w: %s",
				siwWorks()[i].program, siwWorks()[i].size, words[2], err, body[max(0, len(body)-500):])
			fmt.Fprintln(os.Stderr, failed)
			continue
		}
		figures[strings.TrimSpace(head)] = x
		if n, err := strconv.Atoi(words[0]); err == nil {
			rounds = max(rounds, n)
		}
	}
	all, err := siwRatios(figures, rounds)
	return all, errors.Join(err, failedIf(err, failed))
}

// failedIf returns why turns failed if that is why there is an error.
func failedIf(err, failed error) error {
	if err == nil {
		return nil
	}
	return failed
}

// siwRatios divides round by round.
func siwRatios(figures map[string]float64, rounds int) (all []siwValue, err error) {
	for i, w := range siwWorks() {
		for _, by := range siwBeside() {
			var ratios []float64
			for round := range rounds + 1 {
				x, ok := figures[fmt.Sprintf("%d %d %s", round, i, by)]
				theirs, ok2 := figures[fmt.Sprintf("%d %d %s", round, i, siwTheirs)]
				if ok && ok2 {
					ratios = append(ratios, x/theirs)
				}
			}
			if len(ratios) == 0 {
				return nil, fmt.Errorf("the guest says nothing of %s, by %s", w.program, siwTool(by))
			}
			v := siwValue{Program: w.program, Tool: siwTool(by), Size: w.size, Rounds: len(ratios), Less: w.less}
			v.Ratio, v.RatioLower, v.RatioUpper = quartiles(ratios)
			all = append(all, v)
		}
	}
	return all, nil
}

// parse reads a figure in microseconds, or in MiB/s, which perftest calls MB/sec.
func (w siwWork) parse(whose, body string) (float64, error) {
	if whose != siwOurs {
		return perftestFigure(body, w.column)
	}
	var said perf.Report
	text := body[max(0, strings.IndexByte(body, '{')):]
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&said); err != nil {
		return 0, err
	}
	if len(said.Results) != 1 {
		return 0, errors.New("iwarp reports no result")
	}
	if w.less {
		return said.Results[0].Typical, nil
	}
	return said.Results[0].BWAverage, nil
}

// perftestFigure reads a column of perftest's table: its names may have spaces, so that
// they are found by what precedes them.
func perftestFigure(text, column string) (float64, error) {
	lines := strings.Split(text, "\n")
	for i, line := range lines[:len(lines)-1] {
		before, _, ok := strings.Cut(line, column)
		if !ok || !strings.Contains(line, "#bytes") {
			continue
		}
		at := len(slices.DeleteFunc(strings.Fields(before), func(word string) bool { return word == "BW" }))
		for _, below := range lines[i+1:] { // after complaints, if any
			row := strings.Fields(below)
			if at >= len(row) || row[0][0] < '0' || row[0][0] > '9' {
				continue
			}
			x, err := strconv.ParseFloat(row[at], 64)
			if err == nil && (math.IsInf(x, 0) || math.IsNaN(x) || x == 0) {
				err = errors.New("the clock was of no use")
			}
			return x, err
		}
	}
	return 0, fmt.Errorf("no column %s", column)
}

// siwTable has a row for each work and tool.
func siwTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("over siw", "bytes", "beside it", "its figure, divided by siw's",
		"quartiles", "better is", "rounds"))
	for _, v := range rec.Siw {
		better := "more"
		if v.Less {
			better = "less"
		}
		ratio := spreadOf{v.Ratio, v.RatioLower, v.RatioUpper}.cells(v.Rounds)
		b.WriteString(report.MarkdownRow(v.Program, strconv.Itoa(v.Size), v.Tool, ratio[0], ratio[1],
			better, strconv.Itoa(v.Rounds)))
	}
	return b.String()
}
