// Package message is what the two ends of a file transfer say to each other, each message in a Send of its own, and
// what a name may be. It does no I/O.
//
// A message begins with the same four bytes; numbers are in network order.
//
//	 0      1       2              4
//	+------+-------+--------------+----
//	| Type | Flags |     Code     | ...
//	+------+-------+--------------+----
//
// After them come:
//
//	Begin    Rate 8, Path 2+n
//	Offer    Mode 4, Nanoseconds 4, Seconds 8, Size 8, Path 2+n, Detail 2+n     Code: the Kind
//	Answer   Text 2+n                                                           Code: the Code
//	Grant    Offset 8, Length 4, STag 4, TO 8, Digest 32
//	Wrote    Offset 8, Length 4, Digest 32, Text 2+n                            Code: the State
//	Done     Digest 32
//	End      nothing
//	Working  nothing
//
// A text of 2+n bytes has its length in front. What a message has no use for is zero, and nothing follows it. Parse
// takes only what Append makes of values in range, so that nobody has to look twice.
package message
