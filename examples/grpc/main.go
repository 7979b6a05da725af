// Command grpc is a server of gRPC and a client of it, whose connections are RDMA: package stream has a net.Listener for the
// one, and a dialer for the other. gRPC is as it is, and knows nothing of it.
//
//	grpc serve tcp :7471
//	grpc check tcp HOST:7471
//
// The service is gRPC's own for health, so that nothing has to be generated. With "sctp" in place of "tcp" it all goes over
// SCTP. This example is a module of its own, as the others do without gRPC: run it from its directory.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/stream"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "serve":
		cfg := stream.ListenConfig{RDMA: iwarp.ListenConfig{Network: over(args[1])}}
		ln, err := cfg.Listen(ctx, args[1], args[2])
		if err != nil {
			return err
		}
		log.Printf("serving on %v", ln.Addr())
		return serve(ctx, ln, newServer())
	case len(args) == 3 && args[0] == "check":
		dialer := stream.Dialer{RDMA: iwarp.Dialer{Network: over(args[1])}}
		answer, err := check(ctx, &dialer, args[1], args[2])
		if err == nil {
			fmt.Println(answer)
		}
		return err
	}
	return errors.New("usage: grpc serve NETWORK ADDR, or grpc check NETWORK ADDR")
}

// over is what carries connections over a network: nil where it is TCP.
func over(network string) iwarp.SegmentNetwork {
	if network == "sctp" {
		return new(iwarpsctp.Network)
	}
	return nil
}

// newServer has the service.
func newServer() *grpc.Server {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return server
}

// serve serves until the context ends, and then until the calls that have begun have ended.
func serve(ctx context.Context, ln net.Listener, server *grpc.Server) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		server.GracefulStop()
		close(stopped)
	})
	err := server.Serve(ln)
	if !stop() {
		<-stopped
	}
	return err
}

// connect is a client whose connections are RDMA, over a network. There is no name to resolve and no TLS in it.
func connect(dialer *stream.Dialer, network, addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		}))
}

// check asks a server how it is.
func check(ctx context.Context, dialer *stream.Dialer, network, addr string) (string, error) {
	client, err := connect(dialer, network, addr)
	if err != nil {
		return "", err
	}
	answer, err := grpc_health_v1.NewHealthClient(client).Check(ctx, new(grpc_health_v1.HealthCheckRequest))
	return answer.GetStatus().String(), errors.Join(err, client.Close())
}
