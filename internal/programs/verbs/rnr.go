//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/rdmap"
)

// rnrPolicy is what waits for receives in the guise of RoCE. Programs that count on that being tried again for ever
// have as much under way as their Send Queues hold.
var rnrPolicy = iwarp.RNRPolicy{Bytes: 64 << 20, Messages: iwarp.MaxQueueDepth}

// What waits for receives on a connection of librdmacm as an iWARP device.
const (
	rnrBytes   = 1 << 20
	rnrLeast   = 100 * time.Millisecond
	rnrForever = time.Minute // what a program gets that asks for no limit
)

// rnrWait is for how long messages of the peer wait and no receive is posted. The peer would try so often again, each
// time after that timer: "the maximum number of times that a send operation from the remote peer should be retried"
// (rdma_connect(3)). 7 is no limit.
func rnrWait(retries, timer uint8) time.Duration {
	const noLimit = 7
	switch {
	case retries == 0:
		return 0
	case retries >= noLimit:
		return rnrForever
	}
	return max(time.Duration(retries)*rnrTimer(timer), rnrLeast)
}

// rnrTimer is the time for which one of the 32 codes of min_rnr_timer stands, as InfiniBand has them: from 10 us for 1 by
// turns half and a third more, and for 0 what would come after the last.
func rnrTimer(code uint8) time.Duration {
	const unit, codes = 10 * time.Microsecond, 32
	if code %= codes; code == 0 {
		code = codes
	}
	switch {
	case code == 1:
		return unit
	case code%2 == 0:
		return unit << (code / 2)
	}
	return 3 * unit << (code/2 - 1)
}

// setRNR has messages wait for receives as the program wants it. Without that they end the connection, as iWARP has it.
func (q *QP) setRNR(p *ConnParam) {
	if q.device.roce {
		return
	}
	policy := iwarp.RNRPolicy{}
	if wait := rnrWait(p.RNRRetries, p.MinRNRTimer); wait > 0 {
		policy = iwarp.RNRPolicy{Bytes: rnrBytes, Messages: iwarp.MaxQueueDepth, Wait: wait}
	}
	_ = emulation.SetRNR(q.qp, &policy) // a QP that has a connection has its policy
}

// lacksReceive tells the user, once, why a connection has ended on which a message of the peer found no receive. One that
// the program itself has ended has no use for it.
func (q *QP) lacksReceive(err error) {
	var end *iwarp.TerminateError
	if !errors.As(err, &end) || end.Code != rdmap.CodeDDPInvalidMSNNoBuffer || q.device.roce || q.closes.Load() {
		return
	}
	what := errors.New("a Send of the peer found no posted receive, which ended the connection")
	if q.device.confirms() {
		what = errors.New(what.Error() + ": with iwarp run --as roce, at both ends, it waits for one")
	}
	q.device.log.Log(context.Background(), slog.LevelWarn, "iwarp: no receive", "qp", q.number, "advice", what.Error())
	q.device.advised.Do(func() { complain(what) })
}
