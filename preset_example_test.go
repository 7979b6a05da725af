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
	// Initiate.RTR: siw answers Write if that is offered, else Read, and Write even where neither is: a Send alone ends in a Terminate
	// Initiate.Markers: siw has no markers: a Request with M=1 is answered by a reject
	// Accept.Markers: siw has no markers: behind a Reply with M=1 it closes the connection
	// Initiate.ClientServer: either does; with A=0 siw may send before our first FPDU
	// Dialects: siw starts with revision 2 only; and it echoes reserved bits, so that its S=1 in revision 1 does not mean an Rtr frame
	// NoFallback: siw takes revision 2: where it closes the connection, or resets it, that has another cause
	// Nudge: the default: siw may miss the first FPDU when it comes soon behind its Reply
	// MaxPDLength: a PD_Length over 256 is answered by a RST, and in a Reply crashes siw as Initiator: with revision 2 that leaves 252 octets
}
