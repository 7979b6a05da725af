package perf

import "context"

// Run measures with both ends in this process, over loopback TCP.
func Run(ctx context.Context, opts Options, watch Observer) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	ln, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = Serve(ctx, ln, nil) // what ails the responder, the initiator reports
	}()
	defer func() { // the initiator has closed: the responder only has to notice
		cancel()
		<-served
		ln.Close()
	}()
	return Connect(ctx, ln.Addr().String(), opts, watch)
}
