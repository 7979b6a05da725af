package lowerlayer

import "time"

// Some of our last acknowledgements are followed by nothing that would tell whether the peer has them. Where they are
// lost the peer sends again what they were for, which the system's stack would go on to answer; a stack in user space
// answers nothing once the program has ended. So before that may be, it sends such an acknowledgement several times:
// all of them are lost less often than once in a million times on a path that loses 3 % of the packets. They are
// spaced, as what is lost on a path is often lost together, by half a round trip, and not so far that who closes would
// notice.

// longestPause is that between two of them, at most.
const longestPause = 100 * time.Millisecond

// AssurancePause is how long to wait between two acknowledgements of the same, on a path with this round trip; zero: it
// is not known.
func AssurancePause(rtt time.Duration) time.Duration {
	if rtt <= 0 {
		return longestPause
	}
	return min(rtt/2, longestPause)
}
