package iwarp

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// TestSaidOfRefusals has refusals told over SCTP, where there is no connection to hand over, and over TCP.
func TestSaidOfRefusals(t *testing.T) {
	x, y := net.Pipe()
	defer x.Close()
	defer y.Close()
	plain := &mpa.RejectError{PrivateData: []byte("no")}
	enhanced := &mpa.RejectError{PrivateData: []byte("no"), Enhanced: true, PeerIRD: 3, PeerORD: 4}
	why := errors.New("too old")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&RejectError{plain, noConn{}}, "iwarp: the responder rejected the session (2 bytes of private data \"no\")"},
		{&RejectError{enhanced, noConn{}}, "iwarp: the responder rejected the session (2 bytes of private data \"no\", IRD 3, ORD 4)"},
		{&RejectError{&mpa.RejectError{PrivateData: append(bytes.Repeat([]byte("a"), 64), 0)}, noConn{}},
			"iwarp: the responder rejected the session (65 bytes of private data \"" +
				strings.Repeat("a", 64) + "\" ...)"},
		{&RejectError{&mpa.RejectError{PrivateData: bytes.Repeat([]byte("a"), 65)}, noConn{}},
			"iwarp: the responder rejected the session (65 bytes of private data \"" +
				strings.Repeat("a", 65) + "\")"},
		{&RejectError{&mpa.RejectError{PrivateData: bytes.Repeat([]byte("a"), 64)}, noConn{}},
			"iwarp: the responder rejected the session (64 bytes of private data \"" +
				strings.Repeat("a", 64) + "\")"},
		{&RejectError{&mpa.RejectError{}, noConn{}},
			"iwarp: the responder rejected the session (0 bytes of private data)"},
		{&RejectError{plain, x}, plain.Error()},
		{&VerifyError{why, noConn{}}, "iwarp: Verify refused the peer's answer: too old"},
		{&VerifyError{why, x}, "iwarp: Verify refused the peer's Reply: too old"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
