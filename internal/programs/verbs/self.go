//go:build linux && (amd64 || arm64)

package verbs

import "github.com/goiwarp/iwarp"

// A QP in the guise of RoCE may be connected to itself: UCX does that for messages of a process to itself. As a
// connection has two ends, another QP of package iwarp sends then what the program posts, and the first has the
// receives. The program knows of one.

// speak makes the one that sends.
func (q *QP) speak() error {
	cfg := q.config
	cfg.SRQ, cfg.RecvDepth = nil, 1
	voice, err := q.pd.CreateQP(cfg)
	if err == nil {
		q.voice.Store(voice)
	}
	return err
}

// sender returns the one that sends: mostly the only one.
func (q *QP) sender() *iwarp.QP {
	if voice := q.voice.Load(); voice != nil {
		return voice
	}
	return q.qp
}

// ends returns both ends, or the only one, and that which sends first.
func (q *QP) ends() []*iwarp.QP {
	if voice := q.voice.Load(); voice != nil {
		return []*iwarp.QP{voice, q.qp}
	}
	return []*iwarp.QP{q.qp}
}

// mute ends the one that sends, if there are two, in order.
func (q *QP) mute() {
	if voice := q.voice.Swap(nil); voice != nil {
		_ = voice.Close()
	}
}
