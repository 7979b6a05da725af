package main

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stream"
	"github.com/goiwarp/iwarp/usertcp"
)

// A rig is a server, with gRPC's own service for tests beside that of the example, and how to reach it.
type rig struct {
	t       *testing.T
	ctx     context.Context
	network string
	addr    string
	dialer  stream.Dialer
	rnic    *iwarp.RNIC // of the clients
	server  *grpc.Server
	stop    context.CancelFunc
	served  chan error
}

// layers are what connections go over: the system's TCP, SCTP, and a TCP in user space.
var layers = []string{"tcp", "sctp", "usertcp"}

func newRig(t *testing.T, layer string) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, network: layer, rnic: iwarp.NewRNIC(iwarp.RNICConfig{}), server: newServer(), served: make(chan error, 1)}
	t.Cleanup(func() { must(t, r.rnic.Close()) })
	pd, err := r.rnic.AllocPD()
	must(t, err)
	r.dialer.RDMA.PD = pd
	var listen stream.ListenConfig
	at := "127.0.0.1:0"
	if layer == "usertcp" {
		here, there, err := usertcp.Pair(usertcp.Config{}, usertcp.Path{}, usertcp.Path{})
		must(t, err)
		t.Cleanup(func() { must(t, here.Close()); must(t, there.Close()) })
		r.dialer.RDMA.Stack, listen.RDMA.Stack = here, there
		r.network, at = "tcp", "192.0.2.2:0"
	}
	r.dialer.RDMA.Network, listen.RDMA.Network = over(layer), over(layer)
	ln, err := listen.Listen(ctx, r.network, at)
	must(t, err)
	r.addr = ln.Addr().String()
	grpc_testing.RegisterTestServiceServer(r.server, interop.NewTestServer())
	serving, stop := context.WithCancel(ctx)
	r.stop = stop
	go func() { r.served <- serve(serving, ln, r.server) }()
	t.Cleanup(stop)
	return r
}

// client is one, with a connection of its own.
func (r *rig) client() (grpc_testing.TestServiceClient, *grpc.ClientConn) {
	r.t.Helper()
	conn, err := connect(&r.dialer, r.network, r.addr)
	must(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	return grpc_testing.NewTestServiceClient(conn), conn
}

// TestInterop runs the cases by which gRPC tries its own implementations against each other: calls without streams, with one in
// either direction and in both, deadlines, cancellation, metadata and statuses. They compare all data, and a failure ends the program.
func TestInterop(t *testing.T) {
	for _, layer := range layers {
		t.Run(layer, func(t *testing.T) {
			r := newRig(t, layer)
			client, conn := r.client()
			for _, c := range []func(context.Context, grpc_testing.TestServiceClient, ...grpc.CallOption){
				interop.DoEmptyUnaryCall, interop.DoLargeUnaryCall, interop.DoClientStreaming, interop.DoServerStreaming,
				interop.DoPingPong, interop.DoEmptyStream, interop.DoTimeoutOnSleepingServer, interop.DoCancelAfterBegin,
				interop.DoCancelAfterFirstResponse, interop.DoCustomMetadata, interop.DoStatusCodeAndMessage, interop.DoSpecialStatusMessage,
			} {
				c(r.ctx, client)
			}
			interop.DoUnimplementedMethod(r.ctx, conn)
			if wrote := r.rnic.Stats().Sent[rdmap.OpWrite].Bytes; wrote < 250_000 { // DoLargeUnaryCall alone has more
				t.Errorf("%d bytes went by RDMA Writes", wrote)
			}
			r.stop()
			must(t, <-r.served)
		})
	}
}

// TestDeadline: a call whose answer does not come ends at its deadline, and the connection serves the next.
func TestDeadline(t *testing.T) {
	for _, layer := range layers {
		t.Run(layer, func(t *testing.T) {
			r := newRig(t, layer)
			client, _ := r.client()
			interop.DoEmptyUnaryCall(r.ctx, client)
			short, cancel := context.WithTimeout(r.ctx, 20*time.Millisecond)
			defer cancel()
			call, err := client.FullDuplexCall(short)
			if err == nil {
				_, err = call.Recv() // of an answer to what is never asked
			}
			wantCode(t, err, codes.DeadlineExceeded)
			interop.DoPingPong(r.ctx, client)
		})
	}
}

// TestGracefulStop: a call that has begun goes on and ends in order, while nobody can begin one.
func TestGracefulStop(t *testing.T) {
	for _, layer := range layers {
		t.Run(layer, func(t *testing.T) {
			r := newRig(t, layer)
			client, _ := r.client()
			call, err := client.FullDuplexCall(r.ctx)
			must(t, err)
			echo(t, call, 1000)
			r.stop()
			for err == nil {
				_, err = client.EmptyCall(r.ctx, new(grpc_testing.Empty))
			}
			wantCode(t, err, codes.Unavailable)
			echo(t, call, 100_000)
			must(t, call.CloseSend())
			if _, err := call.Recv(); err != io.EOF {
				t.Errorf("the end of the call: %v", err)
			}
			must(t, <-r.served)
		})
	}
}

// TestKilled: a server that goes ends the calls that are under way, with an error that allows to try again.
func TestKilled(t *testing.T) {
	for _, layer := range layers {
		t.Run(layer, func(t *testing.T) {
			r := newRig(t, layer)
			client, _ := r.client()
			call, err := client.FullDuplexCall(r.ctx)
			must(t, err)
			echo(t, call, 10)
			r.server.Stop()
			_, err = call.Recv()
			wantCode(t, err, codes.Unavailable)
			must(t, <-r.served)
		})
	}
}

// TestCheck: the example's own client asks the example's own server.
func TestCheck(t *testing.T) {
	r := newRig(t, "tcp")
	answer, err := check(r.ctx, new(stream.Dialer), r.network, r.addr)
	if err != nil || answer != "SERVING" {
		t.Errorf("%q (%v)", answer, err)
	}
	r.stop()
	must(t, <-r.served)
	if answer, err := check(r.ctx, new(stream.Dialer), r.network, r.addr); err == nil {
		t.Errorf("a server that has ended is %s", answer)
	}
}

// echo has the server answer with so many bytes.
func echo(t *testing.T, call grpc_testing.TestService_FullDuplexCallClient, n int) {
	t.Helper()
	must(t, call.Send(&grpc_testing.StreamingOutputCallRequest{ResponseParameters: []*grpc_testing.ResponseParameters{{Size: int32(n)}}}))
	answer, err := call.Recv()
	must(t, err)
	if got := len(answer.GetPayload().GetBody()); got != n {
		t.Errorf("%d bytes, want %d", got, n)
	}
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%v, want %v", err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
