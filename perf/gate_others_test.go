package perf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// busyFrom is the part of the processors' time from which a gate takes the machine for one that has other work.
const busyFrom = 0.08

// A processorTime is what the processors of the machine have done, in ticks: in all, and for others, which are other
// machines of the same host, and processes but this one and its children.
//
// What the first line of /proc/stat has as busy is not to be used: there are virtual machines where it is twice what
// all processes have had.
type processorTime struct{ all, others float64 }

// processors returns the time since the machine came up, and zeros where the system does not tell.
func processors() processorTime {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	return parseProcessors(line, stats())
}

// stats are the lines of /proc/PID/stat of all processes.
func stats() (lines []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			lines = append(lines, string(text))
		}
	}
	return lines
}

// parseProcessors reads the first line of /proc/stat: what had user, nice, system, idle, iowait, irq, softirq and
// steal.
func parseProcessors(line string, processes []string) (p processorTime) {
	fields := strings.Fields(line)
	for i := 1; i < min(9, len(fields)); i++ {
		n, _ := strconv.ParseFloat(fields[i], 64)
		if p.all += n; i == 8 {
			p.others = n
		}
	}
	for _, process := range processes {
		p.others += ticksOfOther(process, os.Getpid())
	}
	return p
}

// ticksOfOther is what a process that is neither this one nor its child has had of the processors, in user space and in
// the system, and what its children had that have ended: so nothing is lost when a process ends, as compilers do soon.
func ticksOfOther(stat string, self int) (ticks float64) {
	pid, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // what stands before may have blanks
	if len(fields) < 15 || pid == strconv.Itoa(self) || fields[1] == strconv.Itoa(self) {
		return 0
	}
	for _, field := range fields[11:15] {
		n, _ := strconv.ParseFloat(field, 64)
		ticks += n
	}
	return ticks
}

// share is the part of the processors' time since then that others had.
func (p processorTime) share(since processorTime) float64 {
	if p.all == since.all {
		return 0
	}
	return max(0, p.others-since.others) / (p.all - since.all)
}

// TestOthersShare reads what Linux prints.
func TestOthersShare(t *testing.T) {
	self := os.Getpid()
	process := func(pid, parent, ticks, ofChildren int) string {
		return fmt.Sprintf("%d (a b) c) S %d 0 0 0 0 0 0 0 0 0 %d 1 %d 3 0 0", pid, parent, ticks, ofChildren)
	}
	const shell, compiler = 1 << 30, 1<<30 + 1
	before := parseProcessors("cpu  1 1 1 1 1 1 1 1 1 1",
		[]string{process(self, 1, 19, 0), process(shell, 1, 100, 0), process(compiler, shell, 50, 0)})
	after := parseProcessors("cpu  11 21 31 101 101 11 11 11 99 99", []string{
		process(self, 1, 40, 5), process(self+1, self, 9, 0), process(shell, 1, 103, 50+20+4), "1 (truncated) S 0",
	})
	if got := after.share(before); got != (10+3+20)/290.0 {
		t.Errorf("others had %v of the time", got)
	}
	if got := before.share(before); got != 0 {
		t.Errorf("where nothing is told others have %v", got)
	}
}
