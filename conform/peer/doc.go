// Package peer has an iWARP peer that is played by a script: it speaks MPA, DDP and RDMAP byte by byte, and may break
// any rule. It tests how an implementation takes a peer that misbehaves.
//
// A [Conn] is one end of a connection: over TCP with [Dial] and [Listen], in memory with [Pipe], or over any net.Conn
// with [New]. This peer accepts a connection, and answers its first RDMA Read Request to the wrong STag:
//
//	func wrongKey(c *peer.Conn) error {
//		c.Respond(mpa.DialectRFC6581)
//		request := c.ExpectSegment(rdmap.OpReadRequest)
//		h := c.Header(rdmap.OpReadResponse)
//		h.STag = 0xbad
//		c.Send(c.Segment(h, make([]byte, 8)))
//		c.ExpectTerminate(rdmap.CodeDDPInvalidSTag)
//		return c.Err()
//	}
//
// # Errors
//
// Methods that send or wait return no error: the Conn keeps the first one, and does nothing after it. [Conn.Err]
// returns it. It is an [*Error] where the other end did not do what was expected, and says what came instead, with the
// bytes and where they stand in the stream. What an Expect method returns after an error is zero, and may be used.
//
// # What is legal, and what is not
//
// [Conn.Initiate] and [Conn.Respond] play a whole legal startup. To break a rule of it, send frames of your own:
// [Request] and [Reply] return the fields of legal ones, to be changed, and the codecs of package mpa write any values.
//
//	r := peer.Reply(c.ExpectStartup(mpa.KeyRequest))
//	r.Rev = 9
//	c.SendStartup(r)
//
// FPDUs begin when a Request and a Reply have passed, or with [Conn.Operate]. [Conn.Segment] and [Conn.FPDU] return a
// legal FPDU without sending it. Change its bytes, send it in pieces, or not at all:
//
//	b := c.Segment(c.Header(rdmap.OpSend), []byte("hello"))
//	b[len(b)-1] ^= 1 // the CRC
//	c.Send(b)
//
// [Seal] gives a changed FPDU a CRC that is right.
//
// # Cases
//
// The Play function of a conform.Case takes such a script. It then runs with transcripts, captures and reports.
package peer
