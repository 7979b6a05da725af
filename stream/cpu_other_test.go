//go:build !unix

package stream_test

import (
	"testing"
	"time"
)

func cpuTime(testing.TB) time.Duration { return 0 }
