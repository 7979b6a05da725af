package mpa_test

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// Two ULPDUs are framed into one buffer and found again.
func Example() {
	w := mpa.NewWriter(false, true)
	stream := w.Append(nil, []byte("header "), []byte("payload"))
	stream = w.Append(stream, []byte("next"))

	r := mpa.NewReader(false, true)
	for len(stream) > 0 {
		f, n, err := r.Next(stream)
		if err != nil || n == 0 {
			fmt.Println("more is needed, or", err)
			return
		}
		fmt.Printf("at %d: %q\n", f.Offset, f.ULPDU)
		stream = stream[n:]
	}
	// Output:
	// at 0: "header payload"
	// at 20: "next"
}

// A startup, with slices in place of a connection.
func ExampleInitiator() {
	now := time.Unix(0, 0)
	i, _ := mpa.NewInitiator(mpa.Offer{IRD: 4, ORD: 16, PrivateData: []byte("hello")})
	r := mpa.NewResponder(mpa.ResponderConfig{})
	r.Start(now)

	r.Input(now, i.Start(now))
	fmt.Printf("%v\n%q\n", r.Request().Frame, r.Request().PrivateData)
	reply, _ := r.Accept(now, mpa.Answer{IRD: 8, ORD: 8})
	i.Input(now, reply)

	n := i.Negotiated()
	fmt.Printf("%v: IRD %d, ORD %d, first the RTR indication %v\n", n.Dialect, n.IRD, n.ORD, n.RTR)
	// Output:
	// MPA ID Req Frame C S rev 2 pd 9: A ird 4 ord 16 rtr send|write|read
	// "hello"
	// RFC 6581: IRD 4, ORD 8, first the RTR indication write
}
