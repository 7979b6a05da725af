package metrics

import (
	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

func sent(s *stats) map[rdmap.Opcode]iwarp.Traffic     { return s.Sent }
func received(s *stats) map[rdmap.Opcode]iwarp.Traffic { return s.Received }

func terminatesSent(s *stats) map[rdmap.Code]uint64     { return s.TerminatesSent }
func terminatesReceived(s *stats) map[rdmap.Code]uint64 { return s.TerminatesReceived }

func oddities(s *stats, emit func(uint64, ...string)) {
	emit(s.Odd.NotRTR, "not_rtr")
	emit(s.Odd.Early, "early")
	emit(s.Odd.Empty, "empty")
	emit(s.Odd.Disorder, "disorder")
	emit(s.Odd.Late, "late")
}

func objects(s *stats, emit func(uint64, ...string)) {
	emit(uint64(s.PDs), "pd")
	emit(uint64(s.QPs), "qp")
	emit(uint64(s.CQs), "cq")
	emit(uint64(s.SRQs), "srq")
	emit(uint64(s.MRs), "mr")
	emit(uint64(s.MWs), "mw")
}

func startupsFailed(s *stats, emit func(uint64, ...string)) {
	for reason, n := range s.Startup.Failed {
		emit(n, reason)
	}
}
