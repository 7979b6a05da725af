package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp"
)

// Messages are a number of a job (4 bytes) and a text, which is the job or its result.
const (
	messageLen = 4096
	textLen    = messageLen - 4
	maxCredits = 64 // jobs that a worker may have at a time
)

var (
	errTooLong = errors.New("a message has no room for so long a job")
	errMessage = errors.New("a message without a number")
)

func message(job int, text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(job)), text...)
}

// receiving is a QP with a receive for each message that the peer may have on the way.
func receiving(credits int) iwarp.QPConfig {
	return iwarp.QPConfig{MaxInline: messageLen, Receives: iwarp.Receives{Count: credits, Size: messageLen}}
}

// send sends a message. It is copied, and the Send Queue has room for more of them than there are credits.
func send(qp *iwarp.QP, job int, text string) error {
	return qp.PostSend(&iwarp.SendWR{Inline: message(job, text), Unsignaled: true})
}

// receive waits for a message. Its receive is posted again when it returns: the peer has its credit back with whatever
// is sent next.
func receive(ctx context.Context, qp *iwarp.QP) (job int, text string, err error) {
	m, err := qp.Receive(ctx)
	if err != nil {
		return 0, "", err
	}
	defer m.Done()
	b := m.Bytes()
	if len(b) < 4 {
		return 0, "", errMessage
	}
	return int(binary.BigEndian.Uint32(b)), string(b[4:]), nil
}
