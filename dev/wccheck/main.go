// Command wccheck reports completions whose error nobody looks at. CQ.Next returns an error that says nothing of the
// request, and CQ.Poll returns none: whether a request has failed is in WC.Err, or WC.Status.
//
// It reports the WC of CQ.Next, and the WCs of CQ.Poll, if a local variable has them, and the function neither asks Err
// or Status of it nor gives it to anybody. It does not see on which path the function asks.
//
//	go -C dev build -o /tmp/wccheck ./wccheck
//	go vet -vettool=/tmp/wccheck ./...
//
// Without go vet, it is run with patterns of packages. It exits with 3 if it reports anything.
package main

import "golang.org/x/tools/go/analysis/singlechecker"

func main() { singlechecker.Main(analyzer) }
