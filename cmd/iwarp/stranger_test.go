package main

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestStranger: who takes connections and says nothing is no matter of a firewall.
func TestStranger(t *testing.T) {
	silent := &mpa.StartupError{Role: mpa.RoleInitiator, Failure: mpa.FailureTimeout, Err: &mpa.Error{}}
	dial := &iwarp.OpError{Op: "dial", To: "tcp h:80", Err: silent}
	over := &net.OpError{Op: "dial", Net: "tcp", Err: dial}
	for _, err := range []error{dial, over, fmt.Errorf("in another: %w", dial)} {
		want := "cat: h:80 accepts TCP but does not speak iWARP, or not yet: check the port, or start iwarp cat --listen or iwarp serve there"
		if got := (&failure{"cat", err}).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	unreached := &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
	if got, told := byStranger("cat", unreached); told {
		t.Errorf("nobody was reached: %s", got)
	}
}
