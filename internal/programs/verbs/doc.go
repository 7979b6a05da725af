//go:build linux && (amd64 || arm64)

// Package verbs is what programs written for libibverbs and librdmacm meet, on top of package iwarp: their objects, by
// number; their work requests and completions, in the memory layout that Linux's rdma-core has given them; their error
// numbers, their events and the states of a rdma_cm_id.
//
// It is pure Go and knows no C: the library that is preloaded (programs/preload) calls it through programs/engine, and
// tests call it as they are. All objects belong to a [Device]. They are named by a [Handle]; one that is wrong, or of
// an object that was destroyed, gives EINVAL.
//
// Programs wait in poll, epoll or read for descriptors: each [Queue] of events has an eventfd, which is readable as
// long as an event is there.
package verbs
