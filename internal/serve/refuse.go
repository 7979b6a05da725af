package serve

import (
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/refuse"
)

// maxRefusals bounds the rejected peers that are waited for at a time.
const maxRefusals = 64

// refuse rejects a request, which is counted.
func (s *Server) refuse(req *iwarp.Request, count func(*Stats), reason string) {
	s.mu.Lock()
	count(&s.stats)
	s.mu.Unlock()
	s.cfg.Log.Warn("rejected", "remote", req.RemoteAddr().String(), "private_data", shown(req.PrivateData()), "reason", reason)
	select {
	case s.refusals <- struct{}{}:
		s.requests.Go(func() {
			defer func() { <-s.refusals }()
			_ = refuse.Politely(req, reason)
		})
	default: // these peers may miss the reason
		_ = req.Close()
	}
}

// shown is the beginning of private data, for the log.
func shown(b []byte) string { return fmt.Sprintf("%.48q", b) }
