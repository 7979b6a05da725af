package peer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform/peer"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A server over TCP that sends an FPDU with a wrong CRC, and what the library says of it.
func Example() {
	ctx := context.Background()
	ln, err := peer.Listen(ctx, "127.0.0.1:0", func(c *peer.Conn) error {
		c.Respond(mpa.DialectRFC6581)
		b := c.Segment(c.Header(rdmap.OpSend), []byte("hello"))
		b[len(b)-1] ^= 1
		c.Send(b)
		c.ExpectTerminate(rdmap.CodeOfMPA(mpa.CodeCRC))
		return c.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	<-qp.Done()
	var terminate *iwarp.TerminateError
	fmt.Println(errors.As(qp.Err(), &terminate), terminate.Code)
	fmt.Println(ln.Close())
	// Output:
	// true LLP/MPA/CRC mismatch (0x2002)
	// <nil>
}
