package sctpkernel

import (
	"errors"
	"fmt"
)

// ErrNone is that there is no SCTP in the kernel, or none for this program.
var ErrNone = fmt.Errorf("no SCTP in the kernel (on Linux: module sctp): %w", errors.ErrUnsupported)
