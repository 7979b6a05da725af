package serve

import (
	"fmt"

	"github.com/goiwarp/iwarp"
)

// refuse rejects a request, which is counted.
func (s *Server) refuse(req *iwarp.Request, count func(*Stats), reason string) {
	s.mu.Lock()
	count(&s.stats)
	s.mu.Unlock()
	log := s.cfg.Log.With("remote", req.RemoteAddr().String())
	log.Warn("rejected", "private_data", shown(req.PrivateData()), "reason", reason)
	s.requests.Go(func() {
		if err := s.door.Refuse(req, []byte(reason)); err != nil {
			log.Warn("the reason was not told", "error", err.Error())
		}
	})
}

// shown is the beginning of private data, for the log.
func shown(b []byte) string { return fmt.Sprintf("%.48q", b) }
