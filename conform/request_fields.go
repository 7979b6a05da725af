package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

const fields = "RFC 5044 7.1.1"

// requestRevisions try revisions and the S bit.
func requestRevisions() []Case {
	cases := []Case{
		toResponder("startup/req-rev-1", "E02 Q07", "RFC 6581 6, 10",
			"A Request of revision 1 is accepted, by a Reply without enhanced data.", func(s *session) {
				s.send("Request", script.Request(mpa.DialectRFC5044, 0).Bytes())
				r := s.peerAccepts("a host MUST continue to accept Requests of revision 1")
				s.want(!r.S(), "a Reply with S=0 to a Request with S=0", r)
				s.want(r.Rev() <= 1, "a Reply of revision 1", r)
			}),
		toResponder("startup/req-rev-1-s", "Q06 T04", fields,
			"In a Request of revision 1 the bit that is S elsewhere is reserved, or the Rtr frame's: the Request is accepted.", func(s *session) {
				s.send("Request", script.Request(mpa.DialectRtr, 0).Bytes())
				r := s.peerAccepts("revision 1 has no other meaning for the bit")
				s.want(r.Rev() <= 1, "a Reply of revision 1", r)
			}),
		toResponder("startup/req-rev-2-plain", "E02", "RFC 6581 10",
			"A Request of revision 2 without S gets a Reply without S, or closes the connection.", func(s *session) {
				s.send("Request", script.Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyRequest,
					C: true, Rev: 2}}.Bytes())
				if s.look(s.opts.Timeout) != sightEnd {
					r := s.peerReply("an unenhanced Reply, or the connection closed")
					s.want(!r.S(), "a Reply with S=0", r)
				}
			}),
		toResponder("startup/req-rev-0", "Q07 N03 N04 N05", "draft-carrier-rddp-rnic-interop-00 5",
			"A Request of revision 0 gets a Reply of revision 0 with M and C, or one of revision 1 and a FIN, or closes the connection.", requestRevision0),
	}
	for _, rev := range []uint8{3, 255} {
		cases = append(cases,
			toResponder(fmt.Sprintf("startup/req-rev-%d", rev), "Q07", fields,
				fmt.Sprintf("A Request of revision %d, which nobody can serve, closes the connection.", rev),
				func(s *session) {
					s.send("Request", script.Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyRequest,
						C: true, Rev: rev}}.Bytes())
					s.expectClosed("it MUST close the connection if it cannot interoperate with the revision")
				}),
			toResponder(fmt.Sprintf("startup/req-rev-%d-s", rev), "Q07 E01", "RFC 6581 6",
				fmt.Sprintf("A Request of revision %d with S and enhanced data gets an enhanced Reply, or closes the connection.", rev), func(s *session) {
					q := script.Request(mpa.DialectRFC6581, depth)
					q.Rev = rev
					s.send("Request", q.Bytes())
					if s.look(s.opts.Timeout) != sightEnd {
						_, ok := s.peerReply("an enhanced Reply, or the connection closed").Enhanced()
						s.want(ok, "a Reply with enhanced data", "none")
					}
				}))
	}
	return all(rfcs(), cases...)
}

func requestRevision0(s *session) {
	s.send("Request", script.Request(mpa.DialectRevision0, 0).Bytes())
	if s.look(s.opts.Timeout) == sightEnd {
		return
	}
	r := s.peerReply("a Reply of revision 0 or 1, or the connection closed")
	if r.Rev() == 0 {
		s.want(r.R() || r.M() && r.C(), "a Reply of revision 0 with M=1 and C=1", r)
		return
	}
	s.want(r.Rev() == 1, "a Reply of revision 0 or 1", r)
	if !r.R() {
		s.expectFIN("a non-permissive RNIC gracefully closes the connection after its Reply")
	}
}

// requestFlags try the bits of byte 16.
func requestFlags() []Case {
	cases := []Case{
		toResponder("startup/req-res-sent", "Q06", fields,
			"Reserved bits that are set in the Request are zero in the Reply.", func(s *session) {
				q := s.request()
				q.Res = 0x0f
				s.send("Request", q.Bytes())
				r := s.peerAccepts("reserved bits are not checked on reception")
				s.want(r.Res() == 0, "a Reply whose reserved bits are zero", r)
			}),
		toResponder("startup/req-r", "Q05", fields,
			"R in a Request is not checked, and the Reply's says what the Responder decides.", func(s *session) {
				q := s.request()
				q.R = true
				s.accept(q, "R is not checked on reception in the Request")
			}),
		toResponder("negotiate/req-m", "Q04 F11", "RFC 5044 4.3, 7.1.1",
			"A Request with M is accepted: every sender can insert markers.", func(s *session) {
				q := s.request()
				q.M = true
				s.accept(q, "when the value is '1', Markers MUST be added")
			}),
		toResponder("negotiate/req-no-c", "F13 F14", fields,
			"A Request without C is accepted.", func(s *session) {
				q := s.request()
				q.C = false
				s.accept(q, "C=0 says that the Initiator does not need CRCs")
			}),
	}
	for bit := range 4 {
		cases = append(cases, toResponder(fmt.Sprintf("startup/req-res-%d", 1<<bit), "Q06", fields,
			fmt.Sprintf("The reserved bit 0x%02x in a Request is not checked.", 1<<bit), func(s *session) {
				q := s.request()
				q.Res = 1 << bit
				s.accept(q, "reserved bits are not checked on reception")
			}))
	}
	return all(rfcs(), cases...)
}

// lengths are those of Private Data that are tried, enhanced data included.
var lengths = [...]int{0, 1, 3, 4, 5, 8, 251, 252, 253, 254, 255, 256, 257, 508, 509, 511, 512}

// requestPrivateData try lengths of Private Data.
func requestPrivateData() []Case {
	var cases []Case
	for _, n := range lengths {
		c := toResponder(fmt.Sprintf("startup/req-pd-%d", n), "Q08 E01", fields,
			fmt.Sprintf("A Request with %d bytes of Private Data is accepted.", n), func(s *session) {
				s.accept(s.withTotal(n), "up to 512 bytes of Private Data are allowed")
			})
		if n < mpa.EnhancedLen {
			c = c.in(plain()...)
		}
		cases = append(cases, c)
	}
	for _, n := range []int{513, 1024, 65535} {
		cases = append(cases, toResponder(fmt.Sprintf("startup/req-pd-%d", n), "Q08", fields,
			fmt.Sprintf("A Request with %d bytes of Private Data closes the connection.", n), func(s *session) {
				s.send("Request", s.withTotal(n).Bytes())
				s.expectClosed("if the length exceeds 512 bytes, the receiver MUST close the connection")
			}))
	}
	for n := range mpa.EnhancedLen {
		cases = append(cases, toResponder(fmt.Sprintf("startup/req-short-%d", n), "E01", "RFC 6581 6, 9",
			fmt.Sprintf("An enhanced Request with %d bytes of Private Data is not accepted.", n), func(s *session) {
				q := s.request()
				q.Enhanced, q.ULP = nil, text(n)
				s.send("Request", q.Bytes())
				s.rejects("with S=1, Private Data MUST begin with enhanced data")
			}).in(enhanced()...))
	}
	cases = append(cases, smbDirect("be", []byte{0, 0, 0, 16, 0, 0, 0, 16}),
		smbDirect("le", []byte{16, 0, 0, 0, 16, 0, 0, 0}))
	return all(frames(), cases...)
}

// smbDirect has the IRD and ORD of MS-SMBD as private data of the ULP.
func smbDirect(name string, data []byte) Case {
	return toResponder("startup/req-pd-smbd-"+name, "Q08", "MS-SMBD 6.1",
		"The IRD and ORD that SMB Direct puts into the private data, "+
			map[string]string{"be": "big", "le": "little"}[name]+"-endian, are the ULP's.", func(s *session) {
			q := s.request()
			q.ULP = data
			s.accept(q, "Private Data is the ULP's")
		}).in(mpa.DialectRFC5044)
}

// withTotal returns a Request of n bytes of Private Data in all.
func (s *session) withTotal(n int) script.Startup {
	q := s.request()
	total(&q, n)
	return q
}

// refused expects a rejecting Reply or the connection closed.
func (s *session) rejects(because string) {
	if s.look(s.opts.Timeout) == sightEnd {
		return
	}
	r := s.peerReply("a rejecting Reply, or the connection closed: " + because)
	s.want(r.R(), "a Reply with R=1: "+because, r)
}
