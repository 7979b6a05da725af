package iwarp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/usertcp"
)

// serveWrites accepts one connection, whose peer may write into memory here, and sends what there is when
// the connection has ended.
func serveWrites(ctx context.Context, ln *iwarp.Listener) (offered iwarp.Remote, written <-chan string) {
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	mr, err := pd.Register(make([]byte, 16), iwarp.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan string)
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{PD: pd})
		if err != nil {
			log.Fatal(err)
		}
		<-qp.Done()
		_ = qp.Close()
		done <- string(mr.Bytes())
	}()
	return mr.Remote(0), done
}

// write connects, writes into the peer's memory, and closes.
func write(ctx context.Context, d *iwarp.Dialer, network, addr, text string, to iwarp.Remote) {
	qp, err := d.Dial(ctx, network, addr)
	if err != nil {
		log.Fatal(err)
	}
	mr, err := qp.PD().Register([]byte(text), iwarp.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := qp.Write(ctx, mr.Slice(0, len(text)), to); err != nil {
		log.Fatal(err)
	}
	if err := qp.Close(); err != nil {
		log.Fatal(err)
	}
}

// The network "sctp" has the same verbs over SCTP in UDP.
func ExampleDial_sctp() {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "sctp", "127.0.0.1:0", iwarp.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	memory, written := serveWrites(ctx, ln)
	write(ctx, new(iwarp.Dialer), "sctp", ln.Addr().String(), "placed over SCTP", memory)
	fmt.Println(<-written)
	// Output: placed over SCTP
}

// Two stacks of a TCP that is aware of MPA, each at one end of a link in memory. The one at a program's network
// has a link from usertcp.OpenTUN instead.
func ExampleDialer_stack() {
	ctx := context.Background()
	here, there, err := usertcp.Pair(usertcp.Config{}, usertcp.Path{}, usertcp.Path{})
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	defer there.Close()
	ln, err := iwarp.Listen(ctx, "tcp", "192.0.2.2:7471", iwarp.ListenConfig{Stack: there})
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	memory, written := serveWrites(ctx, ln)
	write(ctx, &iwarp.Dialer{Stack: here}, "tcp", "192.0.2.2:7471", "placed by a TCP.", memory)
	fmt.Println(<-written)
	// Output: placed by a TCP.
}
