//go:build interop

package interop_test

import (
	"fmt"
	"testing"
	"time"
)

// crcCase is one setting of iwarp's --crc and of the driver's constants, with
// the outcome: crc=on, crc=off, or "" where siw refuses.
type crcCase struct {
	crc              string
	required, strict int
	want             string
}

// As a responder siw never enforces a CRC, and refuses one only where strict
// says so and it does not require one itself.
var crcToGuest = []crcCase{
	{"off", 0, 0, "crc=off"},
	{"off", 0, 1, "crc=off"},
	{"off", 1, 0, "crc=off"},
	{"off", 1, 1, "crc=off"},
	{"on", 0, 0, "crc=on"},
	{"on", 0, 1, ""},
	{"on", 1, 0, "crc=on"},
	{"on", 1, 1, "crc=on"},
}

// As an initiator siw asks for what it requires, so that iwarp uses a CRC even
// with --crc off: either side's wish is enough (RFC 5044, section 7.1).
var crcFromGuest = []crcCase{
	{"off", 0, 0, "crc=off"},
	{"off", 0, 1, "crc=off"},
	{"off", 1, 0, "crc=on"},
	{"off", 1, 1, "crc=on"},
	{"on", 0, 0, "crc=on"},
	{"on", 0, 1, ""},
	{"on", 1, 0, "crc=on"},
	{"on", 1, 1, "crc=on"},
}

func (c crcCase) name() string {
	return fmt.Sprintf("crc %s, required %d, strict %d", c.crc, c.required, c.strict)
}

func (c crcCase) siw() string {
	return fmt.Sprintf("mpa_crc_required=%d,mpa_crc_strict=%d", c.required, c.strict)
}

func TestCRCToGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{SIW: "mpa_crc_required=0"})
	for _, c := range crcToGuest {
		t.Run(c.name(), func(t *testing.T) {
			g.Set(t, c.siw())
			server := g.Serve(t, "rping -s -v -S 65000")
			client := rpingTo(t, g, "-C 3 -S 1001 -v -V -d --crc "+c.crc)
			if c.want == "" {
				client.WantFailure(t, 20*time.Second)
				return
			}
			client.WantSuccess(t, 20*time.Second)
			server.WantOutput(t, "DISCONNECT")
			wantPings(t, client.Output(), server.Output(), 3, 1001)
			wantNegotiated(t, client, c.want)
		})
	}
}

func TestCRCFromGuest(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{SIW: "mpa_crc_required=0"})
	for _, c := range crcFromGuest {
		t.Run(c.name(), func(t *testing.T) {
			g.Set(t, c.siw())
			server, port := rpingServer(t, "-C 3 -S 1001 -v -d --crc "+c.crc)
			client := g.Start(t, rpingFrom(port, "-C 3 -S 1001 -v -V"))
			if c.want == "" {
				client.WantOutput(t, "cma event RDMA_CM_EVENT")
				return
			}
			client.WantSuccess(t, 20*time.Second)
			server.WantSuccess(t, 10*time.Second)
			wantPings(t, client.Output(), server.Output(), 3, 1001)
			wantNegotiated(t, server, c.want)
		})
	}
}
