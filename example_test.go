package iwarp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// Both ends in one program: the server offers memory, the client writes to it
// and reads it back.
func ExampleDial() {
	ctx := context.Background()
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	check(err)
	offered, err := pd.Register(make([]byte, 5), iwarp.RemoteRead|iwarp.RemoteWrite)
	check(err)
	ln, err := (&iwarp.ListenConfig{PD: pd}).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		check(err)
		_, err = req.Accept(ctx, iwarp.AcceptConfig{})
		check(err)
	}()

	qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
	check(err)
	defer qp.Close()
	mine, err := qp.PD().Register([]byte("hello....."), iwarp.LocalWrite)
	check(err)
	_, err = qp.Write(ctx, mine.Slice(0, 5), offered.Remote(0))
	check(err)
	_, err = qp.Read(ctx, mine.Slice(5, 5), offered.Remote(0))
	check(err)
	fmt.Printf("%s\n", mine.Bytes())
	// Output: hellohello
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// greeter accepts one connection and sends it a message.
func greeter(ctx context.Context) *iwarp.Listener {
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			return
		}
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
		if err != nil {
			log.Fatal(err)
		}
		_ = qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello, " + string(req.PrivateData()))})
		_ = qp.Close()
	}()
	return ln
}

// A client connects and receives a message. Its receive is posted before the
// connection comes up, as the peer may send at once.
func ExampleDialer_Dial() {
	ctx := context.Background()
	ln := greeter(ctx)
	defer ln.Close()

	buf := make([]byte, 64)
	d := iwarp.Dialer{
		MPA: mpa.Offer{PrivateData: []byte("world")},
		Prepare: func(qp *iwarp.QP) error {
			mr, err := qp.PD().Register(buf, iwarp.LocalWrite)
			if err != nil {
				return err
			}
			return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, len(buf))}})
		},
	}
	qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer qp.Close()

	wc, err := qp.RecvCQ().Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := wc.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", buf[:wc.Length])
	// Output: hello, world
}

// A server looks at what a client says of itself before it decides.
func ExampleListen() {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()

	go func() {
		d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte("a friend")}}
		qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
		if err != nil {
			log.Fatal(err)
		}
		_ = qp.Close()
	}()

	req, err := ln.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if string(req.PrivateData()) != "a friend" {
		_ = req.Reject([]byte("friends only"))
		return
	}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepted", string(req.PrivateData()), "with", req.MPA().Dialect)
	<-qp.Done()
	fmt.Println(qp.Err())
	// Output:
	// accepted a friend with RFC 6581
	// iwarp: the peer closed the connection in order
}

// One side registers memory and tells the other where it is; the other reads it
// without any further help.
func ExampleQP_Read() {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()

	remote := make(chan iwarp.Remote, 1) // stands for a message
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
		if err != nil {
			log.Fatal(err)
		}
		mr, err := qp.PD().Register([]byte("what you see is mine"), iwarp.RemoteRead)
		if err != nil {
			log.Fatal(err)
		}
		remote <- mr.Remote(0)
	}()

	qp, err := new(iwarp.Dialer).Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer qp.Close()
	mr, err := qp.PD().Register(make([]byte, 20), iwarp.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	n, err := qp.Read(ctx, mr.Slice(0, 20), <-remote)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", mr.Bytes()[:n])
	// Output: what you see is mine
}

// shop talks in lines of text to whoever connects, and changes over to RDMA where that is
// wanted.
func shop(ctx context.Context, conn net.Conn) {
	r := bufio.NewReader(conn)
	wanted, err := r.ReadString('\n')
	if err != nil || wanted != "RDMA, please\n" {
		_ = conn.Close()
		return
	}
	// "OK" is the last line. What r may have read beyond the client's is not lost.
	req, err := new(iwarp.ListenConfig).Respond(ctx, iwarp.Buffered(conn, r), []byte("OK\n"))
	if err != nil {
		log.Fatal(err)
	}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
	if err != nil {
		log.Fatal(err)
	}
	_ = qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("this is a Send")})
	_ = qp.Close()
}

// MPA can begin on a TCP connection that has been used otherwise.
func ExampleDialer_Initiate() {
	ctx := context.Background()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		shop(ctx, conn)
	}()

	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(conn, "RDMA, please\n")
	r := bufio.NewReader(conn)
	answer, err := r.ReadString('\n')
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(answer)

	buf := make([]byte, 64)
	d := iwarp.Dialer{Prepare: func(qp *iwarp.QP) error {
		mr, err := qp.PD().Register(buf, iwarp.LocalWrite)
		if err != nil {
			return err
		}
		return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, len(buf))}})
	}}
	qp, err := d.Initiate(ctx, iwarp.Buffered(conn, r), nil)
	var rejected *iwarp.RejectError
	switch {
	case errors.As(err, &rejected):
		fmt.Fprint(rejected.Conn, "then in plain text, please\n") // TCP is still there
		return
	case err != nil:
		log.Fatal(err)
	}
	defer qp.Close()

	wc, err := qp.RecvCQ().Next(ctx)
	if err == nil {
		err = wc.Err() // a completion is there: has the receive succeeded?
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", buf[:wc.Length])
	// Output:
	// OK
	// this is a Send
}

// What the preset for Linux's siw does, and why.
func ExampleLookupPreset() {
	siw, err := iwarp.LookupPreset("siw")
	check(err)
	for _, r := range siw.Reasons {
		fmt.Printf("%s: %s\n", r.Setting, r.Why)
	}
	// A program then connects like this.
	_ = func(ctx context.Context) (*iwarp.QP, error) {
		d := iwarp.Dialer{Preset: &siw}
		return d.Dial(ctx, "tcp", "storage:4420")
	}
	// Output:
	// Initiate.Dialect: siw takes revision 1 too, but then no IRD and ORD are exchanged, and servers such as rping's fail to post their Reads
	// Initiate.RTR: siw answers Write if that is offered, or else Read, and Write even if neither is: offering Send alone ends in a Terminate
	// Initiate.Markers: siw has no markers: it rejects a Request with M=1
	// Accept.Markers: siw has no markers: it closes the connection after a Reply with M=1
	// Initiate.ClientServer: both models work; with A=0 siw may send before our first FPDU
	// Dialects: siw starts with revision 2 only; and it echoes reserved bits, so its S=1 in revision 1 does not announce an Rtr frame
	// NoFallback: siw takes revision 2: if it closes or resets the connection, that has another cause
	// SendEarly: siw's programs start with A=0 and may wait for the Responder to speak first, as siw lets it: nothing would ever be sent; siw takes what comes together with the Reply for an error
	// Nudge: siw may miss the first FPDU if it arrives soon after siw's Reply. The default nudges only where the Reply shows that the peer is siw, which it does not with A=0, or before revision 2
	// MaxPDLength: siw resets a connection with a PD_Length over 256, and crashes on such a Reply: revision 2 leaves 252 bytes
}
