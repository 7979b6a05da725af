package perf_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// busyFrom is the part of the processors' time from which a gate takes the machine for one that has other work.
const busyFrom = 0.08

// processorTime is what all processors of the machine have done, in ticks.
type processorTime struct{ all, busy, own float64 }

// processors returns the time since the machine came up, and zeros where the system does not tell.
func processors() (p processorTime) {
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

// parseProcessors reads the first line of /proc/stat: what had user, nice, system, idle, iowait, irq, softirq and steal.
func parseProcessors(line string, processes []string) (p processorTime) {
	fields := strings.Fields(line)
	for i := 1; i < min(9, len(fields)); i++ {
		n, _ := strconv.ParseFloat(fields[i], 64)
		if p.all += n; i != 4 && i != 5 {
			p.busy += n
		}
	}
	for _, process := range processes {
		p.own += ownTicks(process, os.Getpid())
	}
	return p
}

// ownTicks is what a process has had of the processors, in user space and in the system, if it is this one or its child.
func ownTicks(stat string, self int) (ticks float64) {
	pid, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // what stands before may have blanks
	if len(fields) < 13 || pid != strconv.Itoa(self) && fields[1] != strconv.Itoa(self) {
		return 0
	}
	for _, field := range fields[11:13] {
		n, _ := strconv.ParseFloat(field, 64)
		ticks += n
	}
	return ticks
}

// others is the part of the processors' time since then that was neither idle nor this process's or its children's.
func (p processorTime) others(since processorTime) float64 {
	if p.all == since.all {
		return 0
	}
	return max(0, p.busy-since.busy-(p.own-since.own)) / (p.all - since.all)
}

// TestOthersShare reads what Linux prints.
func TestOthersShare(t *testing.T) {
	self := os.Getpid()
	process := func(pid, parent, ticks int) string {
		return strconv.Itoa(pid) + " (a b) c) S " + strconv.Itoa(parent) + " 0 0 0 0 0 0 0 0 0 " + strconv.Itoa(ticks) + " 1 0 0"
	}
	before := parseProcessors("cpu  1 1 1 1 1 1 1 1 1 1", nil)
	after := parseProcessors("cpu  11 21 31 101 101 11 11 11 99 99", []string{process(self, 1, 19), process(self+1, self, 9), process(self+2, 1, 1000)})
	if after.own != 30 || after.others(before) != (90.0-30)/290 {
		t.Errorf("others had %v, and we %v", after.others(before), after.own)
	}
	if got := before.others(before); got != 0 {
		t.Errorf("where nothing is told others have %v", got)
	}
}
