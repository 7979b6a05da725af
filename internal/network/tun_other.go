//go:build !linux

package network

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/usertcp"
)

func openTUN(string) (usertcp.Link, error) {
	return nil, fmt.Errorf("TUN devices are Linux's: %w", errors.ErrUnsupported)
}
