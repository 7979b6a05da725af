package iwarp_test

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
)

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
	// Nudge: the default: siw may miss the first FPDU if it arrives soon after siw's Reply
	// MaxPDLength: siw resets a connection with a PD_Length over 256, and crashes on such a Reply: revision 2 leaves 252 octets
}
