package traffic

import "time"

const (
	maxSteps  = 40
	firstStep = 100 * time.Microsecond
)

// A series is bytes by time, in steps that double when there are too many.
type series struct {
	step  time.Duration
	bytes [maxSteps][len(kinds)]uint64
	used  int
}

func newSeries() series { return series{step: firstStep} }

// add counts bytes at a time since the beginning. What is earlier counts there.
func (s *series) add(at time.Duration, kind int, bytes uint64) {
	at = max(at, 0)
	for at/s.step >= maxSteps {
		s.widen()
	}
	i := int(at / s.step)
	s.bytes[i][kind] += bytes
	s.used = max(s.used, i+1)
}

// widen makes one step of two.
func (s *series) widen() {
	var wide [maxSteps][len(kinds)]uint64
	for i := range s.bytes {
		for k, n := range s.bytes[i] {
			wide[i/2][k] += n
		}
	}
	s.bytes, s.step, s.used = wide, 2*s.step, (s.used+1)/2
}
