//go:build !amd64 || race

package memory

import "sync/atomic"

func store64(to *uint64, word uint64) { atomic.StoreUint64(to, word) }

func store32(to *uint32, word uint32) { atomic.StoreUint32(to, word) }
