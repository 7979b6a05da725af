package perf

import (
	"cmp"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/quantile"
)

// A series is the samples of one quantity, by transport in order of rounds. Without plain
// TCP there are no samples of it.
type series struct {
	// streams are the connections, twice for both directions; want is how many pairs are to be
	// undisturbed.
	streams, want int
	keep          bool          // disturbed pairs, too
	trip          time.Duration // the path's round trip; 0 if it is not known
	bound         time.Duration // on what it has taken; 0 if there is none
	took          time.Duration // so far, with what goes on between slices
	scarce        bool          // too few of the pairs are undisturbed to say anything
	iwarp, tcp    []sample
}

func (s *series) add(j job, x sample) {
	if j.Transport == TCP {
		s.tcp = append(s.tcp, x)
		return
	}
	s.iwarp = append(s.iwarp, x)
}

// of returns the samples of one transport.
func (s *series) of(t Transport) []sample {
	if t == TCP {
		return s.tcp
	}
	return s.iwarp
}

// msgRate is how many millions of messages a second there were so far of one transport, of bandwidth.
func (s *series) msgRate(j job) float64 {
	done := s.of(j.Transport)
	if j.Quantity == Latency || len(done) == 0 {
		return 0
	}
	return total(done).rate() * float64(s.streams) / 1e6
}

// maxTries is how many times as many pairs as wanted are measured at most.
const maxTries = 2

// enough reports whether after so many rounds there are enough undisturbed pairs, or no
// hope of half of them, or no time for more.
func (s *series) enough(rounds int) bool {
	switch {
	case rounds >= min(s.want, minPairs) && s.bound > 0 && s.took >= s.bound:
		return true
	case rounds < s.want:
		return false
	}
	left := rounds - s.disturbed()
	return left >= s.want || rounds >= maxTries*s.want || left*maxTries < s.want/2
}

// inTrips returns how many round trips of the path a slice has taken, of the transport whose slices were shorter: 0 if
// the path's is not known.
func (s *series) inTrips() float64 {
	if s.trip == 0 || len(s.iwarp) == 0 {
		return 0
	}
	mean := elapsed(s.iwarp) / time.Duration(len(s.iwarp))
	if len(s.tcp) > 0 {
		mean = min(mean, elapsed(s.tcp)/time.Duration(len(s.tcp)))
	}
	return float64(mean) / float64(s.trip)
}

// disturbed returns how many pairs the rest of the machine has disturbed.
func (s *series) disturbed() (n int) {
	for _, bad := range s.marks() {
		if bad {
			n++
		}
	}
	return n
}

// A slice is disturbed if a hypervisor took a CPU away, or if its threads waited for a CPU
// for more of its time, by tooLong, than in the tenth of its transport's slices that waited
// least. Some wait is a measurement's own: it has more threads than there are CPUs.
const tooLong = 0.15

// marks says of each pair whether it was disturbed.
func (s *series) marks() []bool {
	marks := make([]bool, len(s.iwarp))
	if s.keep {
		return marks
	}
	for _, samples := range [][]sample{s.iwarp, s.tcp} {
		usual := quantile.Quantile(waits(samples), 0.1)
		for i, x := range samples {
			if i < len(marks) && (x.usage.Steal > 0 || x.waiting() > usual+tooLong) {
				marks[i] = true
			}
		}
	}
	return marks
}

func waits(samples []sample) []float64 {
	all := make([]float64, len(samples))
	for i, x := range samples {
		all[i] = x.waiting()
	}
	return all
}

// waiting is the time that threads waited for a CPU, as part of the slice's.
func (x sample) waiting() float64 { return float64(x.usage.Wait) / float64(max(x.elapsed, 1)) }

// kept returns the series without disturbed pairs. If too few are left to say anything,
// it is scarce, and has those that waited least: figures, but no ratio.
func (s *series) kept() series {
	k := series{streams: s.streams, want: s.want, keep: s.keep}
	for i, bad := range s.marks() {
		if !bad {
			k.addPair(s, i)
		}
	}
	if len(k.iwarp) >= minPairs || len(k.iwarp) == len(s.iwarp) {
		return k
	}
	k.iwarp, k.tcp, k.scarce = nil, nil, true
	for _, i := range s.quietest(minPairs) {
		k.addPair(s, i)
	}
	return k
}

// addPair adds pair i of another series.
func (s *series) addPair(from *series, i int) {
	s.iwarp = append(s.iwarp, from.iwarp[i])
	if i < len(from.tcp) {
		s.tcp = append(s.tcp, from.tcp[i])
	}
}

// quietest returns the n pairs that waited least, in order of rounds.
func (s *series) quietest(n int) []int {
	all := make([]int, len(s.iwarp))
	wait := make([]float64, len(s.iwarp))
	for i := range all {
		all[i], wait[i] = i, s.iwarp[i].waiting()
		if i < len(s.tcp) {
			wait[i] += s.tcp[i].waiting()
		}
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(wait[i], wait[j]) })
	all = all[:min(n, len(all))]
	slices.Sort(all)
	return all
}
