package perf

import (
	"time"

	"github.com/goiwarp/iwarp/internal/procstat"
)

// usage is what the processes of a measurement have taken of the machine, either since
// they began or during a slice.
type usage struct {
	CPU      time.Duration `json:"cpu_ns"`
	Switches int64         `json:"switches"` // of context, by threads that go to sleep
	Calls    int64         `json:"calls"`    // system calls; only of slices that count them
	Wait     time.Duration `json:"wait_ns"`  // of threads that could run and had no CPU
	Steal    int64         `json:"steal"`    // ticks that the hypervisor gave to others
}

func (u usage) minus(v usage) usage {
	return usage{
		CPU:      u.CPU - v.CPU,
		Switches: u.Switches - v.Switches,
		Calls:    u.Calls - v.Calls,
		Wait:     max(0, u.Wait-v.Wait), // the waits of threads that have ended are forgotten
		Steal:    u.Steal - v.Steal,
	}
}

// plus adds what another process on the same or another host has taken. Processes on the
// same host see the same steal, and calls are known if both processes can count them.
func (u usage) plus(v usage) usage {
	sum := usage{CPU: u.CPU + v.CPU, Switches: u.Switches + v.Switches, Wait: u.Wait + v.Wait,
		Steal: max(u.Steal, v.Steal)}
	if u.Calls > 0 && v.Calls > 0 {
		sum.Calls = u.Calls + v.Calls
	}
	return sum
}

// A meterage measures what this process takes between its begin and its end.
type meterage struct {
	calls *callCounter // nil if they are not counted
	start usage
}

// startMeter starts to measure. Counting system calls makes each of them slower.
func startMeter(calls *callCounter) *meterage {
	m := &meterage{calls: calls}
	m.start.Wait, m.start.Steal = queueWait(), stolen()
	m.start.Calls = calls.count()
	m.start.CPU, m.start.Switches = procstat.Taken()
	return m
}

// usage returns what was taken since startMeter, without what asking for it takes.
func (m *meterage) usage() (u usage) {
	u.CPU, u.Switches = procstat.Taken()
	u.Calls = m.calls.count()
	u.Wait, u.Steal = queueWait(), stolen()
	return u.minus(m.start)
}
