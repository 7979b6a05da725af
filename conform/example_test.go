package conform_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/conform/peer"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Two cases of one's own. The first writes to memory that the peer has never registered: the peer must answer with a
// Terminate. The second is wrong: it expects an answer that no document asks for. What passes is recorded, as by iwarp
// conform --pcap, and the report is one of JUnit.
func Example() {
	cases := []conform.Case{{
		ID: "own/write-unknown-stag", Requirements: []string{"DRV-17"}, Section: "RFC 5041 7.1",
		Text: "A Write to an STag that does not exist is answered with a Terminate.",
		Play: func(_ context.Context, c *peer.Conn) error {
			c.Initiate(mpa.DialectRFC6581)
			h := c.Header(rdmap.OpWrite)
			h.STag = 0xdead
			c.Send(c.Segment(h, []byte("hello")))
			c.ExpectTerminate(rdmap.CodeDDPInvalidSTag)
			c.ExpectFIN()
			return c.Err()
		},
	}, {
		ID: "own/echo", Text: "A Send comes back.",
		Play: func(_ context.Context, c *peer.Conn) error {
			c.Initiate(mpa.DialectRFC6581)
			c.Send(c.Segment(c.Header(rdmap.OpSend), []byte("hello")))
			c.ExpectSegment(rdmap.OpSend)
			return c.Err()
		},
	}}
	var pcap bytes.Buffer // or a file
	record, err := capture.NewWriter(&pcap, capture.WriterConfig{})
	if err != nil {
		log.Fatal(err)
	}
	report := conform.Report{Title: "my driver"}
	sum, err := conform.Run(context.Background(), conform.Options{
		Role: mpa.RoleResponder, Peer: &conform.DialPeer{Addr: serve()}, Cases: cases, Record: record,
	}, func(r *conform.Result) {
		report.Results = append(report.Results, *r)
		fmt.Println(r.Case.ID, r.Verdict)
	})
	if err != nil {
		log.Fatal(err)
	}
	var junit bytes.Buffer
	if err := cmp.Or(report.WriteJUnit(&junit), record.Flush()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(&sum)
	// Output:
	// own/write-unknown-stag pass
	// own/echo fail
	// 1 passed, 1 failed, 0 not applicable, 0 inconclusive
}

// serve has a peer to test, and returns its address.
func serve() string {
	ctx := context.Background()
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			req, err := ln.Accept(ctx)
			if err != nil {
				log.Fatal(err)
			}
			if _, err := req.Accept(ctx, iwarp.AcceptConfig{}); err != nil {
				log.Fatal(err)
			}
		}
	}()
	return ln.Addr().String()
}
