package network

import (
	"context"
	"io"
)

// CloseWith closes a connection when a context ends, unless the function that it returns is called before.
func CloseWith(ctx context.Context, c io.Closer) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.Close() })
}
