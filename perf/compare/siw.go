package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// A siwWork is what one of perftest's programs does over siw, and iwarp beside it, both
// between two processes in one guest and over its loopback.
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

// A siwValue is one work's figures over all rounds. They are of an emulated CPU.
type siwValue struct {
	Program    string  `json:"program"`
	Size       int     `json:"size"`
	Rounds     int     `json:"rounds"`
	Ratio      float64 `json:"ratio"` // of iwarp's figure to the program's
	RatioLower float64 `json:"ratio_lower_quartile"`
	RatioUpper float64 `json:"ratio_upper_quartile"`
	Less       bool    `json:"less_is_better"`
}

// siwMark begins the lines of the guest's console that are for us.
const siwMark = "COMPARE"

// measureSiw has both run in the guest, in turns.
func (c *cli) measureSiw(ctx context.Context, rec *record) error {
	out, err := inGuest(ctx, func(port int) string { return siwScript(port, c.Rounds) }, "--mem", "1024", "--smp", "2", "--timeout", "600")
	if err != nil {
		return err
	}
	rec.Siw, err = siwValues(out)
	return err
}

// inGuest boots the guest of interop with options of its own, and returns what a script says in it. The script is told the port at
// which the host has iwarp for it.
func inGuest(ctx context.Context, script func(port int) string, options ...string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", tmp, "./cmd/iwarp")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	ln, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	go func() { _ = http.Serve(ln, http.FileServer(http.Dir(tmp))) }() //nolint:gosec // to the guest, for a minute
	args := append(append([]string{"run"}, options...), "--", script(ln.Addr().(*net.TCPAddr).Port))
	guest := exec.CommandContext(ctx, filepath.Join("interop", "siw-vm", "siw-vm"), args...)
	guest.Stderr = os.Stderr
	out, err := guest.Output()
	if err != nil {
		return nil, fmt.Errorf("the guest: %w: %.2000s", err, out)
	}
	return out, nil
}

// fetchIwarp has the guest's shell get what inGuest has for it.
func fetchIwarp(port int) string {
	return fmt.Sprintf("wget -q -O iwarp http://10.0.2.2:%d/iwarp && chmod +x iwarp || exit 1\n", port)
}

// siwScript is what the guest's shell does: fetch iwarp, and then, round by round, each
// work by both. The server of each is started first.
func siwScript(port, rounds int) string {
	var b strings.Builder
	b.WriteString(fetchIwarp(port))
	b.WriteString("./iwarp perf --listen $GUEST_IP:7000 >/dev/null 2>&1 &\n")
	fmt.Fprintf(&b, "for round in $(seq %d); do\n", rounds)
	for i, w := range siwWorks() {
		run := fmt.Sprintf("timeout 60 %s -R -F %s -s %d -p 18600", w.program, w.args, w.size)
		fmt.Fprintf(&b, "%s >/dev/null 2>&1 &\nsleep 2\n", run)
		fmt.Fprintf(&b, "echo %s $round %d theirs; %s $GUEST_IP; wait $!\n", siwMark, i, run)
		fmt.Fprintf(&b, "echo %s $round %d ours; ./iwarp perf --connect $GUEST_IP:7000 --tcp=off --json --duration 100ms --op %v --size %d %s 2>/dev/null | tr -d '\\n'; echo\n",
			siwMark, i, w.op, w.size, w.ours)
	}
	b.WriteString("done\nkill %1\n")
	return b.String()
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
			failed = fmt.Errorf("%s of %d octets, %s: %w: %s", siwWorks()[i].program, siwWorks()[i].size, words[2], err, body[max(0, len(body)-500):])
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
		var ratios []float64
		for round := range rounds + 1 {
			ours, ok := figures[fmt.Sprintf("%d %d ours", round, i)]
			theirs, ok2 := figures[fmt.Sprintf("%d %d theirs", round, i)]
			if ok && ok2 {
				ratios = append(ratios, ours/theirs)
			}
		}
		if len(ratios) == 0 {
			return nil, fmt.Errorf("the guest says nothing of %s", w.program)
		}
		v := siwValue{Program: w.program, Size: w.size, Rounds: len(ratios), Less: w.less}
		v.Ratio, v.RatioLower, v.RatioUpper = quartiles(ratios)
		all = append(all, v)
	}
	return all, nil
}

// parse reads a figure in microseconds, or in MiB/s, which perftest calls MB/sec.
func (w siwWork) parse(whose, body string) (float64, error) {
	if whose == "theirs" {
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
			if err == nil && (math.IsInf(x, 0) || math.IsNaN(x)) {
				err = errors.New("the clock was of no use")
			}
			return x, err
		}
	}
	return 0, fmt.Errorf("no column %s", column)
}

// siwTable has a row for each work.
func siwTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("over siw", "octets", "iwarp's figure, divided by siw's", "quartiles", "better is"))
	for _, v := range rec.Siw {
		better := "more"
		if v.Less {
			better = "less"
		}
		b.WriteString(report.MarkdownRow(v.Program, strconv.Itoa(v.Size), fmt.Sprintf("%.2f", v.Ratio), quartilesText(v.RatioLower, v.RatioUpper), better))
	}
	return b.String()
}
