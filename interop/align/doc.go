// Package align holds the tests of Header Alignment on the wire: two ends in two network
// namespaces, a veth pair between them or a router, tcpdump on the sender's interface, and our own
// decode of what it captured.
//
// They need Linux, root, and the commands ip and tcpdump, and so are behind the build
// tag "interop":
//
//	go test -tags interop -count=1 -v ./interop/align
//
// prints the share of aligned segments for each link and workload. TestCompare, which
// runs with IWARP_ALIGN_COMPARE=1 only, measures what alignment costs.
package align
