//go:build linux && (amd64 || arm64)

package verbs

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/goiwarp/iwarp"
)

// fine is the error number of success.
const fine = syscall.Errno(0)

// errnoOf returns the error number by which the manual pages of libibverbs name an error.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return fine
	}
	return failureOf(err)
}

// failureOf is errnoOf for what has failed. It allocates, which a post that succeeds is not to.
func failureOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case errors.Is(err, iwarp.ErrQueueFull), errors.Is(err, iwarp.ErrLimit):
		return syscall.ENOMEM
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	default:
		return syscall.EINVAL
	}
}

// statuses are the numbers of enum ibv_wc_status.
var statuses = map[iwarp.Status]uint32{
	iwarp.StatusSuccess:          0,
	iwarp.StatusLocalLength:      1,
	iwarp.StatusNoReadResources:  2,
	iwarp.StatusLocalProtection:  4,
	iwarp.StatusFlushed:          5,
	iwarp.StatusInvalidateFailed: 6,
	iwarp.StatusBindFailed:       6,
	iwarp.StatusLocalAccess:      8,
	iwarp.StatusRemoteInvalidate: 9,
	iwarp.StatusRemoteAccess:     10,
	iwarp.StatusRemoteOperation:  11,
}

const statusGeneral = 21

func statusOf(s iwarp.Status) uint32 {
	if n, ok := statuses[s]; ok {
		return n
	}
	return statusGeneral
}
