package conform_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A case of one's own: a Write to memory that the peer has never registered. The dialogue is played byte by byte, as the suite's are; the
// peer must answer with a Terminate.
func Example() {
	conn, err := net.Dial("tcp", serve())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	// The startup, in revision 1: without markers, with CRCs.
	if _, err := conn.Write(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1})); err != nil {
		log.Fatal(err)
	}
	reply := make([]byte, mpa.StartupHeaderLen)
	if _, err := io.ReadFull(conn, reply); err != nil {
		log.Fatal(err)
	}
	fmt.Println(mpa.StartupFrame(reply))

	// The Write: a DDP segment in an FPDU.
	write := rdmap.OpWrite.Header(1)
	write.STag, write.Last = 0xdead, true
	w := mpa.NewWriter(false, true)
	if _, err := conn.Write(w.Append(nil, write.Append(nil), []byte("hello"))); err != nil {
		log.Fatal(err)
	}

	// What the peer says to that, until it closes.
	b, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	r := mpa.NewReader(false, true)
	fpdu, _, err := r.Next(b)
	if err != nil {
		log.Fatal(err)
	}
	segment, err := ddp.Parse(fpdu.ULPDU)
	if err != nil {
		log.Fatal(err)
	}
	terminate, err := rdmap.ParseTerminate(segment.Payload)
	fmt.Println(terminate.Code, err)
	// Output:
	// MPA ID Rep Frame C rev 1 pd 0
	// DDP/Tagged Buffer/invalid STag (0x1100) <nil>
}

// serve has a peer to test, and returns its address.
func serve() string {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer ln.Close()
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
		if err != nil {
			log.Fatal(err)
		}
		<-qp.Done()
		_ = qp.Close()
	}()
	return ln.Addr().String()
}
