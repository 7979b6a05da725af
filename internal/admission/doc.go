// Package admission decides who gets a place, who gives way to one more, and how a request that gets none is rejected.
// It has one rule, for connections that are not up yet, for the clients of servers, and for bytes held ahead of order:
//
//   - There is a bound for all together, and one for each source, which is the address of a host ([SourceOf]). So one
//     source alone shuts nobody out.
//   - While there is room, whoever comes gets a place. When there is none, a place is taken from the source that has
//     most places that may be taken; from the newcomer's own, if no other source has more. So a flood is at the cost of
//     its own source.
//   - A connection may give way while it waits for its peer, and the one that has waited longest gives way first. A
//     half-open connection waits from the beginning, a server's client when nothing has moved for [Silence]. A
//     connection on which something moves keeps its place, and so does one that its server has stay. A Request that
//     waits for Accept gives way only if its source has at least two more than the newcomer's. Of bytes that are held,
//     the connection that holds most gives way.
//   - If nobody may give way, the newcomer gets no place. A server rejects it with the reason, and gives it the time to
//     read that ([Rejecter], [Dismissals]).
//
// [NewHalfOpenTable] and [NewServerTable] make a [Table] for connections; [Quota] and [EarlyQuota] are for bytes.
// Nothing here knows what a connection is: it has a function that ends it, which is called without a lock.
package admission
