// Command twolayers is one server over two lower layers: its clients come by TCP, where MPA frames what they send, or by SCTP,
// where DDP needs no MPA. They reach the same memory by the same verbs, and nothing above the connection shows which it is.
//
//	twolayers serve :7471
//	twolayers draw tcp HOST:7471
//	twolayers draw sctp HOST:7471
//
// The memory is one word. A client draws a number from it by FetchAdd, which is carried out by the server's RNIC: no two
// clients draw the same one, whichever way they come. (Ports of TCP and of UDP, in which SCTP runs here, are different things:
// both servers have 7471.)
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
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
	case len(args) == 2 && args[0] == "serve":
		s, err := listen(ctx, args[1], args[1])
		if err != nil {
			return err
		}
		for _, ln := range s.listeners {
			log.Printf("serving on %v %v", ln.Addr().Network(), ln.Addr())
		}
		return s.serve(ctx)
	case len(args) == 3 && args[0] == "draw":
		number, err := draw(ctx, args[1], args[2])
		if err == nil {
			fmt.Println(number)
		}
		return err
	}
	return errors.New("usage: twolayers serve ADDR, or twolayers draw NETWORK ADDR")
}

// A server has one RNIC, and a Listener of it for each lower layer.
type server struct {
	rnic      *iwarp.RNIC
	word      *iwarp.MR
	listeners []*iwarp.Listener
}

func listen(ctx context.Context, tcp, sctp string) (*server, error) {
	s := &server{rnic: iwarp.NewRNIC(iwarp.RNICConfig{})}
	pd, err := s.rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	if s.word, err = pd.Register(make([]byte, iwarp.AtomicLen), iwarp.RemoteAtomic); err != nil {
		return nil, err
	}
	for network, addr := range map[string]string{"tcp": tcp, "sctp": sctp} {
		ln, err := (&iwarp.ListenConfig{PD: pd, Network: layer(network)}).Listen(ctx, network, addr)
		if err != nil {
			return nil, errors.Join(err, s.rnic.Close())
		}
		s.listeners = append(s.listeners, ln)
	}
	return s, nil
}

// layer is what carries connections over a network: nil where it is TCP.
func layer(network string) iwarp.SegmentNetwork {
	if network == "sctp" {
		return new(iwarpsctp.Network)
	}
	return nil
}

// serve accepts until the context ends, and closes all connections in order then.
func (s *server) serve(ctx context.Context) error {
	var accepting sync.WaitGroup
	for _, ln := range s.listeners {
		accepting.Go(func() {
			for {
				req, err := ln.Accept(ctx)
				if err != nil {
					return
				}
				go s.admit(ctx, req)
			}
		})
	}
	accepting.Wait()
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.rnic.Shutdown(last)
}

// admit tells a client where the word is. All else the client does by itself, and the QP ends with its connection.
func (s *server) admit(ctx context.Context, req *iwarp.Request) {
	where, _ := s.word.Remote(0).MarshalBinary()
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: where}})
	if err != nil {
		_ = req.Close()
		return
	}
	<-qp.Done()
	_ = qp.Close()
}

// draw takes the next number. The first is 1.
func draw(ctx context.Context, network, addr string) (uint64, error) {
	d := iwarp.Dialer{Network: layer(network)}
	qp, err := d.Dial(ctx, network, addr)
	if err != nil {
		return 0, err
	}
	defer qp.Close()
	var word iwarp.Remote
	if err := word.UnmarshalBinary(qp.Negotiated().PrivateData); err != nil {
		return 0, err
	}
	before, err := qp.FetchAdd(ctx, word, 1)
	return before + 1, err
}
